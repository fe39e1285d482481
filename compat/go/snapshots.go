package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/tsuna/gohbase/hrpc"
)

// snapshots: take, list, restore, delete.
func snapshots(s *session) {
	b := bed{s, s.table("main", "3", []string{"f"}, "m")}
	for _, name := range s.snapshotNames() {
		must(s.admin.DeleteSnapshot(s.snapshot(name, b.table)))
	}
	must(b.put("a", values("f:q=before"), at(5)))
	must(b.put("z", values("f:q=before"), at(5)))
	topic("snapshots")
	one, two := s.name("snap1"), s.name("snap2")
	does("take", s.admin.CreateSnapshot(s.snapshot(one, b.table)))
	does("take again", s.admin.CreateSnapshot(s.snapshot(one, b.table)))
	does("of a table that is not there", s.admin.CreateSnapshot(s.snapshot(two, s.name("nosuch"))))
	owned := s.snapshot(two, b.table, hrpc.SnapshotSkipFlush(), hrpc.SnapshotOwner("someone"))
	does("without a flush", s.admin.CreateSnapshot(owned))
	s.seeSnapshots("list")
	must(b.put("a", values("f:q=after"), at(6)))
	must(b.put("new", values("f:q=after"), at(6)))
	refused("restore while enabled", s.admin.RestoreSnapshot(s.snapshot(one, b.table)))
	does("disable", s.disable(b.table))
	does("snapshot of a disabled table", s.admin.CreateSnapshot(s.snapshot(s.name("snap3"), b.table)))
	does("restore", s.admin.RestoreSnapshot(s.snapshot(one, b.table)))
	s.awaitRestored(one, b.table)
	does("enable", s.enable(b.table))
	b.seeScan("what was restored", "", "", hrpc.MaxVersions(allVersions))
	clone := bed{s, s.name("clone")}
	does("restore to a new table", s.admin.RestoreSnapshot(s.snapshot(s.name("snap3"), clone.table)))
	does("delete", s.admin.DeleteSnapshot(s.snapshot(one, b.table)))
	does("delete again", s.admin.DeleteSnapshot(s.snapshot(one, b.table)))
	does("restore what is gone", s.admin.RestoreSnapshot(s.snapshot(one, b.table)))
	s.seeSnapshots("list")
	for _, name := range s.snapshotNames() {
		does("delete "+strings.TrimPrefix(name, s.prefix), s.admin.DeleteSnapshot(s.snapshot(name, b.table)))
	}
}

func (s *session) snapshot(name, table string, options ...func(hrpc.Call) error) *hrpc.Snapshot {
	ctx, _ := within()
	// The library's own default is the layout of HBase 0.94, which Grampus does not write.
	options = append([]func(hrpc.Call) error{hrpc.SnapshotVersion(2)}, options...)
	call, err := hrpc.NewSnapshot(ctx, name, table, options...)
	must(err)
	return call
}

// awaitRestored waits for the procedure of a restore: the library only starts it. Enabling the
// table waits for its lock, so an enable and a disable after it wait for the restore.
func (s *session) awaitRestored(snapshot, table string) {
	must(s.enable(table))
	must(s.disable(table))
}

func (s *session) snapshotNames() []string {
	ctx, done := within()
	defer done()
	found, err := s.admin.ListSnapshots(hrpc.NewListSnapshots(ctx))
	must(err)
	var names []string
	for _, snapshot := range found {
		if strings.HasPrefix(snapshot.GetName(), s.prefix) {
			names = append(names, snapshot.GetName())
		}
	}
	sort.Strings(names)
	return names
}

func (s *session) seeSnapshots(step string) {
	ctx, done := within()
	defer done()
	found, err := s.admin.ListSnapshots(hrpc.NewListSnapshots(ctx))
	var lines []string
	for _, snapshot := range found {
		if strings.HasPrefix(snapshot.GetName(), s.prefix) {
			lines = append(lines, fmt.Sprintf("%s of %s, %s, version %d, made %v", snapshot.GetName(), snapshot.GetTable(),
				snapshot.GetType(), snapshot.GetVersion(), isClock(uint64(snapshot.GetCreationTime()))))
		}
	}
	sort.Strings(lines)
	see(step, fmt.Sprint(len(lines))+"\n    "+strings.Join(lines, "\n    "), err)
}
