package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/tsuna/gohbase/hrpc"
)

// admin: tables and their states, cluster status, the balancer.
func admin(s *session) {
	tableStates(s)
	attributes(s)
	unknown(s)
	namesOfTables(s)
	cluster(s)
}

func tableStates(s *session) {
	topic("a table's life")
	name := s.name("life")
	plain := map[string]map[string]string{"f": nil}
	does("create", s.create(name, plain))
	does("create again", s.create(name, plain))
	does("delete while enabled", s.delete(name))
	does("enable while enabled", s.enable(name))
	b := bed{s, name}
	does("put", b.put("r", values("f:q=v"), at(5)))
	does("disable", s.disable(name))
	does("disable again", s.disable(name))
	does("enable", s.enable(name))
	b.seeGet("get", "r")
	does("disable", s.disable(name))
	does("delete", s.delete(name))
	does("delete again", s.delete(name))
	does("disable what is gone", s.disable(name))
	does("enable what is gone", s.enable(name))
	refused("a name with a blank", s.create(s.name("with blank"), plain))
	does("no family", s.create(s.name("nofamily"), nil))
}

func attributes(s *session) {
	topic("attributes of a family")
	for _, attribute := range []struct{ name, value string }{
		{"COMPRESSION", "GZ"}, {"COMPRESSION", "SNAPPY"}, {"DATA_BLOCK_ENCODING", "FAST_DIFF"}, {"BLOOMFILTER", "ROWCOL"},
		{"IN_MEMORY", "true"}, {"TTL", "3600"}, {"KEEP_DELETED_CELLS", "TRUE"}, {"MIN_VERSIONS", "2"},
		{"BLOCKSIZE", "4096"}, {"BLOCKCACHE", "false"}, {"REPLICATION_SCOPE", "1"}, {"BLOOMFILTER", "NOSUCH"}, {"TTL", "0"},
	} {
		name := s.name("with_" + strings.ToLower(attribute.name+"_"+attribute.value))
		err := s.create(name, map[string]map[string]string{"f": {attribute.name: attribute.value}})
		does("create with "+attribute.name+" "+attribute.value, err)
		if err == nil {
			b := bed{s, name}
			does("put", b.put("r", values("f:q=v"), at(5)))
			b.seeGet("get", "r")
		}
	}
}

// unknown is not the name of a compression.
func unknown(s *session) {
	refused("create with COMPRESSION NOSUCH", s.create(s.name("nosuch"), map[string]map[string]string{
		"f": {"COMPRESSION": "NOSUCH"},
	}))
}

func namesOfTables(s *session) {
	topic("lists of tables")
	must(s.create(s.name("split"), map[string]map[string]string{"f": nil, "g": nil}, "h", "p"))
	b := bed{s, s.name("split")}
	for _, row := range []string{"a", "h", "k", "p", "z"} {
		does("put "+row, b.put(row, values("f:q="+row), at(5)))
	}
	b.seeScan("over all regions", "", "")
	ask := func(step string, options ...func(hrpc.Call) error) {
		names, err := s.tables(options...)
		sort.Strings(names)
		see(step, fmt.Sprint(names), err)
	}
	ask("by pattern", hrpc.ListRegex(s.prefix+"_.*"))
	ask("by a pattern of few", hrpc.ListRegex(s.prefix+"_s.*"))
	ask("by a pattern of none", hrpc.ListRegex("nosuch.*"))
	ask("of a namespace", hrpc.ListNamespace("hbase"), hrpc.ListSysTables(true), hrpc.ListRegex("hbase:(meta|namespace)"))
	ask("of a namespace, no system tables", hrpc.ListNamespace("hbase"), hrpc.ListSysTables(false))
	ask("of a namespace that is not there", hrpc.ListNamespace("nosuch"))
	ask("with system tables", hrpc.ListSysTables(true), hrpc.ListRegex("(hbase:)?(meta|namespace)"))
}

func cluster(s *session) {
	topic("the cluster")
	status, err := s.admin.ClusterStatus()
	must(err)
	see("servers", fmt.Sprint(len(status.GetLiveServers())), nil)
	see("dead servers", fmt.Sprint(len(status.GetDeadServers())), nil)
	see("a master", fmt.Sprint(status.GetMaster() != nil), nil)
	see("a cluster id", fmt.Sprint(len(status.GetClusterId().GetClusterId())), nil)
	see("backup masters", fmt.Sprint(len(status.GetBackupMasters())), nil)
	see("regions in transition", fmt.Sprint(len(status.GetRegionsInTransition())), nil)
	see("balancer on", fmt.Sprint(status.GetBalancerOn()), nil)
}
