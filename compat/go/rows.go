package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/tsuna/gohbase/hrpc"
)

// option is the library's type of request options.
type option = func(hrpc.Call) error

// allVersions is the highest number of versions that the library allows in a request.
const allVersions = math.MaxInt32

// values parses `family:qualifier=value` and so on.
func values(cells ...string) map[string]map[string][]byte {
	all := map[string]map[string][]byte{}
	for _, cell := range cells {
		colon := strings.Index(cell, ":")
		equals := colon + strings.Index(cell[colon:], "=")
		family, qualifier := cell[:colon], cell[colon+1:equals]
		if all[family] == nil {
			all[family] = map[string][]byte{}
		}
		all[family][qualifier] = []byte(cell[equals+1:])
	}
	return all
}

// columns parses `family:qualifier`, or `family` for the whole family, as selections of a Get or
// Scan.
func columns(names ...string) option {
	all := map[string][]string{}
	for _, name := range names {
		parts := strings.SplitN(name, ":", 2)
		if len(parts) == 1 {
			all[parts[0]] = nil
		} else {
			all[parts[0]] = append(all[parts[0]], parts[1])
		}
	}
	return hrpc.Families(all)
}

func at(timestamp uint64) option {
	return hrpc.TimestampUint64(timestamp)
}

// A bed is a table and its client.
type bed struct {
	*session
	table string
}

// mutation is one of the library's constructors of mutations.
type mutation = func(context.Context, []byte, []byte, map[string]map[string][]byte, ...func(hrpc.Call) error) (*hrpc.Mutate, error)

func (b bed) put(row string, cells map[string]map[string][]byte, options ...option) error {
	ctx, done := within()
	defer done()
	call, err := hrpc.NewPutStr(ctx, b.table, row, cells, options...)
	if err == nil {
		_, err = b.client.Put(call)
	}
	return err
}

func (b bed) delete(row string, cells map[string]map[string][]byte, options ...option) error {
	ctx, done := within()
	defer done()
	call, err := hrpc.NewDelStr(ctx, b.table, row, cells, options...)
	if err == nil {
		_, err = b.client.Delete(call)
	}
	return err
}

func (b bed) get(row string, options ...option) (string, error) {
	ctx, done := within()
	defer done()
	call, err := hrpc.NewGetStr(ctx, b.table, row, options...)
	if err != nil {
		return "", err
	}
	answer, err := b.client.Get(call)
	return result(answer), err
}

func (b bed) seeGet(step, row string, options ...option) {
	answer, err := b.get(row, options...)
	see(step, answer, err)
}

func (b bed) exists(row string, options ...option) (string, error) {
	ctx, done := within()
	defer done()
	call, err := hrpc.NewGetStr(ctx, b.table, row, options...)
	if err != nil {
		return "", err
	}
	call.ExistsOnly()
	answer, err := b.client.Get(call)
	return result(answer), err
}

func (b bed) scan(start, stop string, options ...option) (string, error) {
	results, err := b.results(start, stop, options...)
	return list(results), err
}

// results returns a scanner's results, up to its end or the first error.
func (b bed) results(start, stop string, options ...option) ([]*hrpc.Result, error) {
	ctx, done := within()
	defer done()
	call, err := hrpc.NewScanRangeStr(ctx, b.table, start, stop, options...)
	if err != nil {
		return nil, err
	}
	scanner := b.client.Scan(call)
	defer scanner.Close()
	var results []*hrpc.Result
	for {
		next, err := scanner.Next()
		if err == io.EOF {
			return results, nil
		} else if err != nil {
			return results, err
		}
		results = append(results, next)
	}
}

func (b bed) seeScan(step, start, stop string, options ...option) {
	answer, err := b.scan(start, stop, options...)
	see(step, answer, err)
}

// fill writes sixty rows r00 to r59 with versions, two families and a column that few rows have.
func (b bed) fill() {
	for row := 0; row < 60; row++ {
		name := fmt.Sprintf("r%02d", row)
		must(b.put(name, values(fmt.Sprintf("f:a=old%d", row)), at(10)))
		must(b.put(name, values(fmt.Sprintf("f:a=new%d", row), fmt.Sprintf("f:b=b%d", row)), at(20)))
		if row%2 == 0 {
			must(b.put(name, values(fmt.Sprintf("g:x=x%d", row)), at(15)))
		}
		if row%15 == 0 {
			must(b.put(name, values(fmt.Sprintf("f:only=%d", row)), at(12)))
		}
	}
}
