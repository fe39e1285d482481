package main

import (
	"github.com/tsuna/gohbase/filter"
	"github.com/tsuna/gohbase/hrpc"
)

// filters: each filter and comparator of the library's filter package, on a scan and some on a Get.
func filters(s *session) {
	b := bed{s, s.table("main", "3", []string{"f", "g"}, "r20", "r40")}
	b.fill()
	for number, row := range []string{"r05", "r10", "r30"} {
		must(b.put(row, map[string]map[string][]byte{"f": {"n": {0, 0, 0, 0, 0, 0, 0, byte(number + 1)}}}, at(20)))
	}
	for _, group := range []struct {
		name  string
		cases []filterCase
	}{
		{"rows", rowFilters()}, {"families and columns", columnFilters()}, {"values", valueFilters()},
		{"comparators", comparators()}, {"lists", lists()},
	} {
		topic(group.name)
		for _, c := range group.cases {
			b.seeScan(c.name, "", "", hrpc.Filters(c.filter), hrpc.MaxVersions(2))
			b.seeScan(c.name+", reversed", "r33", "r11", hrpc.Filters(c.filter), hrpc.Reversed())
			b.seeGet(c.name+", of a row", "r30", hrpc.Filters(c.filter))
		}
	}
}

type filterCase struct {
	name   string
	filter filter.Filter
}

func is(operator filter.CompareType, comparator filter.Comparator) *filter.CompareFilter {
	return filter.NewCompareFilter(operator, comparator)
}

func binary(value string) filter.Comparator {
	return filter.NewBinaryComparator(filter.NewByteArrayComparable([]byte(value)))
}

func rowFilters() []filterCase {
	fuzzy := []*filter.BytesBytesPair{filter.NewBytesBytesPair([]byte("r?5"), []byte{0, 1, 0})}
	ranges := []*filter.RowRange{
		filter.NewRowRange([]byte("r03"), []byte("r05"), true, false),
		filter.NewRowRange([]byte("r38"), []byte("r41"), false, true),
	}
	return []filterCase{
		{"prefix", filter.NewPrefixFilter([]byte("r3"))},
		{"inclusive stop", filter.NewInclusiveStopFilter([]byte("r03"))},
		{"page", filter.NewPageFilter(3)},
		{"row less", filter.NewRowFilter(is(filter.Less, binary("r03")))},
		{"row greater or equal", filter.NewRowFilter(is(filter.GreaterOrEqual, binary("r57")))},
		{"row not equal", filter.NewRowFilter(is(filter.NotEqual, binary("r30")))},
		{"fuzzy row", filter.NewFuzzyRowFilter(fuzzy)},
		{"row ranges", filter.NewMultiRowRangeFilter(ranges)},
		{"all rows by chance", filter.NewRandomRowFilter(2)},
		{"no rows by chance", filter.NewRandomRowFilter(-1)},
		{"first key only", filter.NewFirstKeyOnlyFilter()},
		{"first key with qualifiers", filter.NewFirstKeyValueMatchingQualifiersFilter([][]byte{[]byte("b"), []byte("x")})},
	}
}

func columnFilters() []filterCase {
	return []filterCase{
		{"family", filter.NewFamilyFilter(is(filter.Equal, binary("g")))},
		{"qualifier", filter.NewQualifierFilter(is(filter.GreaterOrEqual, binary("only")))},
		{"column prefix", filter.NewColumnPrefixFilter([]byte("on"))},
		{"column prefixes", filter.NewMultipleColumnPrefixFilter([][]byte{[]byte("a"), []byte("x")})},
		{"column range", filter.NewColumnRangeFilter([]byte("a"), []byte("only"), false, true)},
		{"column range without ends", filter.NewColumnRangeFilter(nil, nil, true, true)},
		{"column count", filter.NewColumnCountGetFilter(2)},
		{"column page", filter.NewColumnPaginationFilter(1, 1, nil)},
		{"column page from a column", filter.NewColumnPaginationFilter(2, 0, []byte("b"))},
		{"key only", filter.NewKeyOnlyFilter(false)},
		{"key only, lengths", filter.NewKeyOnlyFilter(true)},
		{"timestamps", filter.NewTimestampsFilter([]int64{10, 15})},
		{"dependent column", filter.NewDependentColumnFilter(is(filter.NoOp, nil2()), []byte("f"), []byte("b"), false)},
		{"dependent column dropped", filter.NewDependentColumnFilter(is(filter.Equal, binary("b30")), []byte("f"), []byte("b"), true)},
	}
}

// nil2 is the comparator of a condition that compares nothing.
func nil2() filter.Comparator {
	return filter.NewNullComparator()
}

func valueFilters() []filterCase {
	single := func(qualifier string, operator filter.CompareType, value string, missing, latest bool) *filter.SingleColumnValueFilter {
		return filter.NewSingleColumnValueFilter([]byte("f"), []byte(qualifier), operator, binary(value), missing, latest)
	}
	return []filterCase{
		{"value", filter.NewValueFilter(is(filter.Equal, binary("x30")))},
		{"value less", filter.NewValueFilter(is(filter.Less, binary("b12")))},
		{"single column", single("a", filter.Equal, "new30", true, true)},
		{"single column, older too", single("a", filter.Equal, "old30", true, false)},
		{"single column missing kept", single("only", filter.Equal, "30", false, true)},
		{"single column missing dropped", single("only", filter.Equal, "30", true, true)},
		{"single column excluded", filter.NewSingleColumnValueExcludeFilter(single("only", filter.Greater, "15", true, true))},
	}
}

func comparators() []filterCase {
	value := func(comparator filter.Comparator) filter.Filter {
		return filter.NewValueFilter(is(filter.Equal, comparator))
	}
	comparable := func(text string) *filter.ByteArrayComparable {
		return filter.NewByteArrayComparable([]byte(text))
	}
	return []filterCase{
		{"binary prefix", value(filter.NewBinaryPrefixComparator(comparable("new3")))},
		// Only for values of eight bytes: HBase reads beyond shorter ones.
		{"long", filter.NewSingleColumnValueFilter([]byte("f"), []byte("n"), filter.Greater, filter.NewLongComparator(
			comparable("\x00\x00\x00\x00\x00\x00\x00\x02")), true, true)},
		{"bits and", value(filter.NewBitComparator(filter.BitComparatorAND, comparable("\x01\x01\x01")))},
		{"bits or", value(filter.NewBitComparator(filter.BitComparatorOR, comparable("x30")))},
		{"bits xor", value(filter.NewBitComparator(filter.BitComparatorXOR, comparable("x30")))},
		{"null", value(filter.NewNullComparator())},
		{"not null", filter.NewValueFilter(is(filter.NotEqual, filter.NewNullComparator()))},
		{"substring", value(filter.NewSubstringComparator("W3"))},
		{"regex", value(filter.NewRegexStringComparator("^x[1-3]+0$", 0, "UTF-8", "JAVA"))},
		{"regex, any case", value(filter.NewRegexStringComparator("NEW1.$", 2, "UTF-8", "JAVA"))},
		{"a broken regex", value(filter.NewRegexStringComparator("x[", 0, "UTF-8", "JAVA"))},
	}
}

func lists() []filterCase {
	prefix := filter.NewPrefixFilter([]byte("r3"))
	first := filter.NewFirstKeyOnlyFilter()
	small := filter.NewQualifierFilter(is(filter.Less, binary("b")))
	return []filterCase{
		{"all of", filter.NewList(filter.MustPassAll, prefix, first)},
		{"one of", filter.NewList(filter.MustPassOne, prefix, small)},
		{"nested", filter.NewList(filter.MustPassAll, filter.NewList(filter.MustPassOne, prefix, small), first)},
		{"none", filter.NewList(filter.MustPassAll)},
		{"skip", filter.NewSkipFilter(filter.NewValueFilter(is(filter.NotEqual, binary("x30"))))},
		{"while", filter.NewWhileMatchFilter(filter.NewRowFilter(is(filter.Less, binary("r03"))))},
		{"wrapped", filter.NewWrapper(prefix)},
	}
}
