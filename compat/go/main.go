// Command compat sends requests to a server through an unmodified gohbase and prints the responses.
//
//	compat QUORUM SUITE...   (all: every suite)
//	compat --list
//
// QUORUM is the address of the ZooKeeper protocol. The output is a transcript like that of
// compat/java: one line per observation, with everything that differs from run to run replaced. So
// two servers are compared by comparing two texts.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/sirupsen/logrus"
)

// suites are run in this order.
var suites = []struct {
	name string
	run  func(*session)
}{
	{"admin", admin},
	{"gets", gets},
	{"mutations", mutations},
	{"atomics", atomics},
	{"batches", batches},
	{"scans", scans},
	{"filters", filters},
	{"snapshots", snapshots},
	{"compressed", compressed},
}

func main() {
	// The library's log messages about retries go to the log, not to the transcript.
	logrus.SetOutput(os.Stderr)
	if len(os.Args) == 2 && os.Args[1] == "--list" {
		fmt.Println(strings.Join(names(), " "))
		return
	}
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: compat QUORUM SUITE...")
		os.Exit(2)
	}
	for _, name := range chosen(os.Args[2:]) {
		runSuite(os.Args[1], name)
	}
}

func names() []string {
	var all []string
	for _, suite := range suites {
		all = append(all, suite.name)
	}
	return all
}

func chosen(arguments []string) []string {
	var wanted []string
	for _, argument := range arguments {
		if argument == "all" {
			wanted = append(wanted, names()...)
		} else {
			wanted = append(wanted, argument)
		}
	}
	return wanted
}

func runSuite(quorum, name string) {
	for _, suite := range suites {
		if suite.name != name {
			continue
		}
		fmt.Println("## " + name)
		s := open(quorum, name)
		// A suite that fails records this in its transcript, and the next one still runs.
		func() {
			defer func() {
				if broken := recover(); broken != nil {
					fmt.Printf("BROKEN OFF: %v\n", broken)
				}
			}()
			s.dropAll()
			suite.run(s)
			s.dropAll()
		}()
		s.client.Close()
		fmt.Println("end of " + name)
		return
	}
	fmt.Fprintln(os.Stderr, "no suite "+name)
	os.Exit(2)
}
