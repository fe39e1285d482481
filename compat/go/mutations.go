package main

import (
	"strings"
	"time"

	"github.com/tsuna/gohbase/hrpc"
)

// mutations: puts and deletes of all kinds.
func mutations(s *session) {
	b := bed{s, s.table("main", "5", []string{"f", "g"})}
	puts(b)
	deletes(b)
	durabilities(b)
	timesToLive(b)
}

func puts(b bed) {
	topic("puts")
	does("of two families", b.put("p", values("f:a=1", "f:b=2", "g:c=3"), at(10)))
	b.seeGet("the row", "p")
	does("at the same time", b.put("p", values("f:a=again"), at(10)))
	does("earlier", b.put("p", values("f:a=early"), at(5)))
	b.seeGet("the row", "p", hrpc.MaxVersions(allVersions))
	does("by the server's clock", b.put("clock", values("f:a=1", "g:b=2")))
	b.seeGet("the row", "clock")
	does("by a time", b.put("time", values("f:a=1"), hrpc.Timestamp(time.Unix(1000, 0))))
	b.seeGet("the row", "time")
	does("bytes of all kinds", b.put("by\x00\xff", values("f:\x00\xfe=\x01\x80"), at(1)))
	b.seeGet("the row", "by\x00\xff")
	does("an empty value", b.put("empty", values("f:a="), at(1)))
	b.seeGet("the row", "empty")
	does("a long value", b.put("long", values("f:a="+strings.Repeat("0123456789", 100_000)), at(1)))
	b.seeGet("the row", "long")
	does("a value too long", b.put("long", values("f:b="+strings.Repeat("x", 11<<20)), at(1)))
	refused("an empty row", b.put("", values("f:a=1")))
	refused("a row too long", b.put(strings.Repeat("r", 40_000), values("f:a=1")))
	does("a family that is not there", b.put("p", values("nosuch:a=1")))
	does("to a table that is not there", bed{b.session, b.name("nosuch")}.put("p", values("f:a=1")))
}

func deletes(b bed) {
	fresh := func(row string) string {
		for _, version := range []uint64{10, 20, 30} {
			must(b.put(row, values("f:a=a", "f:b=b", "g:c=c"), at(version)))
		}
		return row
	}
	all := hrpc.MaxVersions(allVersions)
	none := func(names ...string) map[string]map[string][]byte {
		chosen := map[string]map[string][]byte{}
		for _, name := range names {
			parts := strings.SplitN(name, ":", 2)
			if chosen[parts[0]] == nil && len(parts) == 2 {
				chosen[parts[0]] = map[string][]byte{}
			}
			if len(parts) == 2 {
				chosen[parts[0]][parts[1]] = nil
			} else {
				chosen[parts[0]] = nil
			}
		}
		return chosen
	}
	topic("deletes")
	for _, kind := range []struct {
		name    string
		columns map[string]map[string][]byte
		options []option
	}{
		{"a row", nil, nil},
		{"a row up to a time", nil, []option{at(20)}},
		{"a family", none("f"), nil},
		{"a family up to a time", none("f"), []option{at(20)}},
		{"a family at a time", none("f"), []option{at(20), hrpc.DeleteOneVersion()}},
		{"a column", none("f:a"), nil},
		{"a column up to a time", none("f:a"), []option{at(20)}},
		{"a column at a time", none("f:a"), []option{at(20), hrpc.DeleteOneVersion()}},
		{"the newest of a column", none("f:a"), []option{hrpc.DeleteOneVersion()}},
		{"columns of two families", none("f:b", "g:c"), []option{at(30)}},
		{"a column that is not there", none("f:nosuch"), nil},
		{"a family that is not there", none("nosuch"), nil},
		{"a row, one version", nil, []option{hrpc.DeleteOneVersion()}},
	} {
		row := fresh("delete " + kind.name)
		does(kind.name, b.delete(row, kind.columns, kind.options...))
		b.seeGet("what is left", row, all)
	}
	does("a row that is not there", b.delete("nosuch", nil))
	row := fresh("again")
	does("a row", b.delete(row, nil, at(30)))
	does("and put before the delete", b.put(row, values("f:a=hidden"), at(25)))
	does("and put after it", b.put(row, values("f:a=seen"), at(31)))
	b.seeGet("the row", row, all)
}

func durabilities(b bed) {
	topic("durability")
	for name, durability := range []hrpc.DurabilityType{hrpc.UseDefault, hrpc.SkipWal, hrpc.AsyncWal, hrpc.SyncWal, hrpc.FsyncWal} {
		row := "durability" + string(rune('0'+name))
		does(row, b.put(row, values("f:a=1"), at(1), hrpc.Durability(durability)))
		b.seeGet("the row", row)
	}
}

func timesToLive(b bed) {
	topic("time to live of a cell")
	does("a short one", b.put("brief", values("f:a=1"), hrpc.TTL(1500*time.Millisecond)))
	does("a long one", b.put("long life", values("f:a=1"), hrpc.TTL(time.Hour)))
	b.seeGet("the short one", "brief")
	time.Sleep(2 * time.Second)
	b.seeGet("the short one later", "brief")
	b.seeGet("the long one later", "long life")
}
