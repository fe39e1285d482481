package main

import (
	"crypto/md5"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"time"

	"github.com/tsuna/gohbase/hrpc"
)

// longBytes is the length from which a byte string is shown by length and digest; manyResults is the
// same for lists.
const (
	longBytes   = 48
	manyResults = 14
)

// clockSlackMs is the distance from this machine's clock within which a timestamp counts as set by
// the server.
const clockSlackMs = 3_600_000

// bytes writes bytes that are not printable as `\xNN`.
func bytes(value []byte) string {
	if len(value) > longBytes {
		return fmt.Sprintf("<%d bytes %x>", len(value), md5.Sum(value))
	}
	var text strings.Builder
	for _, b := range value {
		if b < ' ' || b > '~' || b == '\\' {
			fmt.Fprintf(&text, "\\x%02X", b)
		} else {
			text.WriteByte(b)
		}
	}
	return text.String()
}

// result shows all cells, after the unusual properties of the result.
func result(result *hrpc.Result) string {
	if result == nil {
		return "null"
	}
	text := ""
	if result.Exists != nil {
		text += fmt.Sprintf("exists=%v ", *result.Exists)
	}
	if result.Stale {
		text += "stale "
	}
	if result.Partial {
		text += "partial "
	}
	if len(result.Cells) == 0 {
		return text + "(empty)"
	}
	return text + cells(result.Cells)
}

// cells are shown as row/family:qualifier@timestamp=value; `@now`, `@now+1` ... are clock times in
// their order.
func cells(cells []*hrpc.Cell) string {
	var clock []uint64
	for _, cell := range cells {
		if at := *cell.Timestamp; isClock(at) && !contains(clock, at) {
			clock = append(clock, at)
		}
	}
	sort.Slice(clock, func(a, b int) bool { return clock[a] < clock[b] })
	var texts []string
	for _, cell := range cells {
		kind := ""
		if cell.CellType != nil && cell.CellType.String() != "PUT" {
			kind = "!" + cell.CellType.String()
		}
		texts = append(texts, fmt.Sprintf("%s/%s:%s@%s%s=%s", bytes(cell.Row), bytes(cell.Family), bytes(cell.Qualifier),
			timestamp(*cell.Timestamp, clock), kind, bytes(cell.Value)))
	}
	return strings.Join(texts, " ")
}

func timestamp(at uint64, clock []uint64) string {
	for rank, time := range clock {
		if time == at && rank == 0 {
			return "now"
		} else if time == at {
			return fmt.Sprintf("now+%d", rank)
		}
	}
	return fmt.Sprint(at)
}

func isClock(at uint64) bool {
	away := int64(at) - time.Now().UnixNano()/1_000_000
	return -clockSlackMs < away && away < clockSlackMs
}

func contains(list []uint64, value uint64) bool {
	for _, item := range list {
		if item == value {
			return true
		}
	}
	return false
}

// list shows each result on its own line; a long list by its ends and a digest of the whole.
func list(results []*hrpc.Result) string {
	var texts []string
	for _, item := range results {
		texts = append(texts, result(item))
	}
	text := fmt.Sprint(len(texts))
	if len(texts) > manyResults {
		text += fmt.Sprintf(", digest %x", md5.Sum([]byte(strings.Join(texts, "\n"))))
		texts = append(append(texts[:3:3], "..."), texts[len(texts)-2:]...)
	}
	for _, line := range texts {
		text += "\n    " + line
	}
	return text
}

var (
	className = regexp.MustCompile(`(?:[a-z0-9]+\.)+([A-Z][A-Za-z$]*(?:Exception|Error))`)
	unstable  = []struct {
		pattern *regexp.Regexp
		name    string
	}{
		{regexp.MustCompile(`[0-9a-f]{32}`), "<hash>"},
		{regexp.MustCompile(`[A-Za-z0-9_.-]+,\d+,\d{13}`), "<server>"},
		{regexp.MustCompile(`,\d{13}\.`), ",<id>."},
		{regexp.MustCompile(`(localhost|127\.0\.0\.1):\d+`), "<address>"},
		{regexp.MustCompile(`\d{13}`), "<ms>"},
	}
)

// exception is the class of the first Java exception that an error names, otherwise its text.
func exception(err error) string {
	text := err.Error()
	if found := className.FindStringSubmatch(text); found != nil {
		return "!" + found[1]
	}
	for _, replace := range unstable {
		text = replace.pattern.ReplaceAllString(text, replace.name)
	}
	return "!" + strings.SplitN(text, "\n", 2)[0]
}
