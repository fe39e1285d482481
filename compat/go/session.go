package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tsuna/gohbase"
	"github.com/tsuna/gohbase/hrpc"
)

// patience is the time limit of one call, including the library's retries.
const patience = 20 * time.Second

// A session has one suite's clients and its tables, whose names all start with `compat_go_SUITE`.
type session struct {
	quorum string
	prefix string
	client gohbase.Client
	admin  gohbase.AdminClient
}

func open(quorum, suite string, options ...gohbase.Option) *session {
	return &session{
		quorum: quorum,
		prefix: "compat_go_" + suite,
		client: gohbase.NewClient(quorum, options...),
		admin:  gohbase.NewAdminClient(quorum),
	}
}

// name is the suite's table of that name.
func (s *session) name(table string) string {
	return s.prefix + "_" + table
}

// table creates a table whose families keep `versions`, split at the given rows.
func (s *session) table(table string, versions string, families []string, splits ...string) string {
	attributes := map[string]map[string]string{}
	for _, family := range families {
		attributes[family] = map[string]string{"VERSIONS": versions}
	}
	must(s.create(s.name(table), attributes, splits...))
	return s.name(table)
}

func (s *session) create(name string, families map[string]map[string]string, splits ...string) error {
	ctx, done := within()
	defer done()
	var options []func(*hrpc.CreateTable)
	if len(splits) > 0 {
		var keys [][]byte
		for _, split := range splits {
			keys = append(keys, []byte(split))
		}
		options = append(options, hrpc.SplitKeys(keys))
	}
	return s.admin.CreateTable(hrpc.NewCreateTable(ctx, []byte(name), families, options...))
}

func (s *session) disable(name string) error {
	ctx, done := within()
	defer done()
	return s.admin.DisableTable(hrpc.NewDisableTable(ctx, []byte(name)))
}

func (s *session) enable(name string) error {
	ctx, done := within()
	defer done()
	return s.admin.EnableTable(hrpc.NewEnableTable(ctx, []byte(name)))
}

func (s *session) delete(name string) error {
	ctx, done := within()
	defer done()
	return s.admin.DeleteTable(hrpc.NewDeleteTable(ctx, []byte(name)))
}

// tables returns the names of tables that the options select, in the server's order.
func (s *session) tables(options ...func(hrpc.Call) error) ([]string, error) {
	ctx, done := within()
	defer done()
	question, err := hrpc.NewListTableNames(ctx, options...)
	if err != nil {
		return nil, err
	}
	answer, err := s.admin.ListTableNames(question)
	var names []string
	for _, table := range answer {
		names = append(names, string(table.Namespace)+":"+string(table.Qualifier))
	}
	return names, err
}

// dropAll removes every table of the suite, so that an aborted run does not affect the next.
func (s *session) dropAll() {
	names, err := s.tables(hrpc.ListRegex(s.prefix + "_.*"))
	must(err)
	for _, name := range names {
		name = strings.TrimPrefix(name, "default:")
		// It may already be disabled.
		_ = s.disable(name)
		must(s.delete(name))
	}
}

func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func topic(name string) {
	fmt.Println("# " + name)
}

// see records a result, or the exception.
func see(step string, answer string, err error) {
	if err != nil {
		answer = exception(err)
	}
	fmt.Println(step + ": " + answer)
}

// does records that something succeeded, or the exception.
func does(step string, err error) {
	see(step, "ok", err)
}

// refused records that the server refuses a request permanently. HBase reports this as a bare
// IOException if its cause is another kind of Java exception, and its own clients then retry in
// vain; either class is accepted.
func refused(step string, err error) {
	answer := "it was not"
	if err != nil {
		answer = exception(err)
	}
	if answer == "!IOException" || answer == "!DoNotRetryIOException" {
		answer = "yes"
	}
	fmt.Println("refused: " + step + ": " + answer)
}
