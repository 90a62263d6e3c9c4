package lines

// Handed keeps what came while nobody asked for it. What was taken is what a member may commit.
type Handed struct {
	waiting []Record
	// The next offset of each partition.
	Positions map[int32]int64
}

// Add has records wait.
func (h *Handed) Add(records ...Record) { h.waiting = append(h.waiting, records...) }

// Len is how many wait.
func (h *Handed) Len() int { return len(h.waiting) }

// Take gives the first ones away.
func (h *Handed) Take(count int) []Record {
	found := h.waiting[:count]
	h.waiting = h.waiting[count:]
	if h.Positions == nil {
		h.Positions = map[int32]int64{}
	}
	for _, record := range found {
		h.Positions[record.Partition] = record.Offset + 1
	}
	return found
}
