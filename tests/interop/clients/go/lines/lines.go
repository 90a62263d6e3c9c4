// Package lines is the program's side of the protocol that tests/support/clients/remote.py describes: a request
// is a line of JSON on the standard input, and its answer is a line of JSON on the standard output.
package lines

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

const requestBytesMax = 64 << 20

// Request has the fields of every operation; each uses its own. Bytes are base64 in JSON, which is how Go's
// encoder writes a []byte; a null is a nil slice.
type Request struct {
	Op string

	Address        string
	ReconnectMsMax int64 `json:"reconnect_ms_max"`
	WaitMsMax      int64 `json:"wait_ms_max"`

	Topic         string
	Codec         string
	Acks          int
	Idempotent    bool
	GiveUpAfterMs int64 `json:"give_up_after_ms"`
	LingerMs      int64 `json:"linger_ms"`
	BatchBytesMax int32 `json:"batch_bytes_max"`

	Key         []byte
	Value       []byte
	Headers     []Header
	TimestampMs *int64 `json:"timestamp_ms"`
	Partition   *int32

	Start Start
	// Which ones, of a consumer; how many, of a topic.
	Partitions    json.RawMessage
	Committed     bool
	FetchBytesMax *int32 `json:"fetch_bytes_max"`
	OutOfRange    string `json:"out_of_range"`
	Count         int

	Total    int
	Before   int64
	Broker   int32
	Settings map[string]string
	Wanted   map[string]string
	Removed  []string

	Group       string
	Protocol    string
	Instance    *string
	SessionMs   int64 `json:"session_ms"`
	HeartbeatMs int64 `json:"heartbeat_ms"`
	MomentMs    int64 `json:"moment_ms"`
	// By partition.
	Commits map[int32]Commit
	Offsets map[int32]int64
}

// Commit is what a group has committed for a partition.
type Commit struct {
	Offset   int64  `json:"offset"`
	Metadata string `json:"metadata"`
}

// Group is one that is described: its state, and the partitions of every member.
type Group struct {
	State   string    `json:"state"`
	Members [][]int32 `json:"members"`
}

// Start is where a consumer begins.
type Start struct {
	At          string
	Offset      int64
	TimestampMs int64 `json:"timestamp_ms"`
}

// Header is [name, value] in JSON.
type Header struct {
	Name  string
	Value []byte
}

func (h Header) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{h.Name, h.Value})
}

func (h *Header) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&h.Name, &h.Value})
}

// Record is one that was read.
type Record struct {
	Partition     int32    `json:"partition"`
	Offset        int64    `json:"offset"`
	TimestampMs   int64    `json:"timestamp_ms"`
	TimestampType *int8    `json:"timestamp_type"`
	Key           []byte   `json:"key"`
	Value         []byte   `json:"value"`
	Headers       []Header `json:"headers"`
}

// Delivery is what became of one message.
type Delivery struct {
	Partition *int32   `json:"partition"`
	Offset    *int64   `json:"offset"`
	Error     *Refusal `json:"error,omitempty"`
}

// Refusal is an error with Kafka's number, if it has one.
type Refusal struct {
	Code *int16 `json:"code"`
	Text string `json:"text"`
}

// Setting is one that is described.
type Setting struct {
	Value  *string `json:"value"`
	Source string  `json:"source"`
}

// Cluster is what is known of the brokers; a client that does not show the cluster's id has nil.
type Cluster struct {
	ClusterID  *string          `json:"cluster_id"`
	Controller int32            `json:"controller"`
	Brokers    map[int32]string `json:"brokers"`
}

// PartitionList is the partitions of open_consumer and of the admin of groups.
func (r Request) PartitionList() (found []int32, err error) {
	err = json.Unmarshal(r.Partitions, &found)
	return
}

// PartitionCount is the partitions of create_topic.
func (r Request) PartitionCount() (found int32, err error) {
	err = json.Unmarshal(r.Partitions, &found)
	return
}

// Wait is how long one operation may take.
func (r Request) Wait() time.Duration { return Millis(r.WaitMsMax) }

// Reconnect is how long the client waits at most before it looks for its broker again.
func (r Request) Reconnect() time.Duration { return Millis(r.ReconnectMsMax) }

// Millis is a number of milliseconds.
func Millis(count int64) time.Duration { return time.Duration(count) * time.Millisecond }

// Opened is a producer, a consumer, an admin, a member of a group or an admin of groups.
type Opened interface {
	Do(Request) (any, error)
	Close()
}

// Program is one client library.
type Program struct {
	// The module whose version is the client's.
	Module string
	Open   func(Request) (Opened, error)
	// Says an error of the client as the protocol does.
	Refusal func(error) *Refusal
}

// Serve answers every line until there are no more, and closes what was opened.
func (p Program) Serve() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, requestBytesMax)
	output := json.NewEncoder(os.Stdout)
	var opened Opened
	for input.Scan() {
		var request Request
		if err := json.Unmarshal(input.Bytes(), &request); err != nil {
			fail(err)
		}
		value, err := p.answer(&opened, request)
		if err != nil {
			err = output.Encode(map[string]any{"error": p.Refusal(err)})
		} else {
			err = output.Encode(map[string]any{"ok": value})
		}
		if err != nil {
			fail(err)
		}
	}
	if err := input.Err(); err != nil {
		fail(err)
	}
	if opened != nil {
		opened.Close()
	}
}

func (p Program) answer(opened *Opened, request Request) (any, error) {
	switch request.Op {
	case "version":
		return version(p.Module), nil
	case "open_producer", "open_consumer", "open_admin", "open_member", "open_group_admin":
		found, err := p.Open(request)
		if err == nil {
			*opened = found
		}
		return nil, err
	}
	if *opened == nil {
		return nil, fmt.Errorf("%s: nothing is opened", request.Op)
	}
	return (*opened).Do(request)
}

// Unknown is the answer to an operation that is not there.
func Unknown(request Request) (any, error) {
	return nil, fmt.Errorf("unknown operation %q", request.Op)
}

func version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == module {
				return dependency.Version[1:]
			}
		}
	}
	return "unknown"
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
