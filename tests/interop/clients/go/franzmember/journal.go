package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// journal has the lines that tests/support/group_runs/journal.py describes.
type journal struct {
	file *os.File
	mu   sync.Mutex
	// What was read and is not committed yet, by partition.
	unsaved map[int32]int64
}

func openJournal(path string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	return &journal{file: file, unsaved: map[int32]int64{}}, err
}

func (j *journal) write(word string, what ...any) {
	line := fmt.Sprintf("%d %s", time.Now().UnixMicro(), word)
	for _, each := range what {
		line += " " + strings.ReplaceAll(fmt.Sprint(each), "\n", " ")
	}
	if _, err := j.file.WriteString(line + "\n"); err != nil {
		fail(err)
	}
}

func (j *journal) given(word string, partitions []int32) {
	if len(partitions) == 0 {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var what []any
	for _, partition := range partitions {
		delete(j.unsaved, partition)
		what = append(what, partition)
	}
	j.write(word, what...)
}

func (j *journal) read(partition int32, records []*kgo.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	first, last := int64(-1), int64(-1)
	for _, record := range records {
		if string(record.Value) != fmt.Sprintf("%d/%d", partition, record.Offset) {
			j.write("wrong", "partition", partition, "offset", record.Offset, string(record.Value))
		}
		if first < 0 {
			first = record.Offset
		} else if record.Offset != last+1 {
			j.write("read", partition, first, last)
			first = record.Offset
		}
		last = record.Offset
	}
	if first >= 0 {
		j.write("read", partition, first, last)
		j.unsaved[partition] = last + 1
	}
}

// toSave is a copy of what is not committed yet.
func (j *journal) toSave() map[int32]int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	found := map[int32]int64{}
	for partition, offset := range j.unsaved {
		found[partition] = offset
	}
	return found
}

func (j *journal) positions(word string, positions map[int32]int64) {
	var what []string
	for partition, offset := range positions {
		what = append(what, fmt.Sprintf("%d:%d", partition, offset))
	}
	sort.Strings(what)
	j.write(word, strings.Join(what, " "))
}

func (j *journal) committed(positions map[int32]int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.positions("committed", positions)
	for partition, offset := range positions {
		if j.unsaved[partition] == offset {
			delete(j.unsaved, partition)
		}
	}
}
