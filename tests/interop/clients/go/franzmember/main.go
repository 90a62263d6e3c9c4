// A member of a group with franz-go; tests/support/group_runs/orders.py says what it is told.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const commitTriesMax = 5

type orders struct {
	Address       string
	Topic         string
	Group         string
	Journal       string
	Protocol      string
	Instance      *string
	SessionMs     int64 `json:"session_ms"`
	HeartbeatMs   int64 `json:"heartbeat_ms"`
	PollMs        int64 `json:"poll_ms"`
	RecordsMax    int   `json:"records_max"`
	CommitEveryMs int64 `json:"commit_every_ms"`
}

type member struct {
	orders     orders
	journal    *journal
	client     *kgo.Client
	committing sync.Mutex
}

func main() {
	m := &member{}
	if err := json.Unmarshal([]byte(os.Args[1]), &m.orders); err != nil {
		fail(err)
	}
	var err error
	if m.journal, err = openJournal(m.orders.Journal); err != nil {
		fail(err)
	}
	m.journal.write("ready")
	input := bufio.NewReader(os.Stdin)
	if _, err = input.ReadString('\n'); err != nil {
		fail(err)
	}
	if m.client, err = kgo.NewClient(m.options()...); err != nil {
		fail(err)
	}
	m.run(input)
}

func millis(count int64) time.Duration { return time.Duration(count) * time.Millisecond }

func (m *member) options() []kgo.Opt {
	options := []kgo.Opt{
		kgo.SeedBrokers(m.orders.Address),
		kgo.ConsumerGroup(m.orders.Group),
		kgo.ConsumeTopics(m.orders.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(millis(m.orders.PollMs)),
		kgo.DisableAutoCommit(),
		// Nothing is given up while what was polled is not noted yet.
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, given map[string][]int32) {
			m.journal.given("assigned", given[m.orders.Topic])
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, taken map[string][]int32) {
			m.commit()
			m.journal.given("revoked", taken[m.orders.Topic])
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, taken map[string][]int32) {
			m.journal.given("lost", taken[m.orders.Topic])
		}),
	}
	if m.orders.Protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	} else {
		options = append(options,
			kgo.SessionTimeout(millis(m.orders.SessionMs)),
			kgo.HeartbeatInterval(millis(m.orders.HeartbeatMs)),
		)
	}
	if m.orders.Instance != nil {
		options = append(options, kgo.InstanceID(*m.orders.Instance))
	}
	return options
}

func (m *member) run(input io.Reader) {
	leaving := make(chan struct{})
	go func() {
		// Nothing else is ever sent to it: the end of its input is what it waits for.
		_, _ = io.Copy(io.Discard, input)
		close(leaving)
	}()
	commitAt := time.Now()
	for {
		select {
		case <-leaving:
			m.commit()
			// Its listener tells of the partitions that it gives up.
			m.client.CloseAllowingRebalance()
			m.journal.write("left")
			return
		default:
		}
		m.poll()
		if !time.Now().Before(commitAt) {
			m.commit()
			commitAt = time.Now().Add(millis(m.orders.CommitEveryMs))
		}
		m.client.AllowRebalance()
	}
}

func (m *member) poll() {
	ctx, cancel := context.WithTimeout(context.Background(), millis(m.orders.PollMs))
	defer cancel()
	fetches := m.client.PollRecords(ctx, m.orders.RecordsMax)
	fetches.EachPartition(func(each kgo.FetchTopicPartition) {
		m.journal.read(each.Partition, each.Records)
	})
}

func (m *member) commit() {
	m.committing.Lock()
	defer m.committing.Unlock()
	for range commitTriesMax {
		positions := m.journal.toSave()
		if len(positions) == 0 {
			return
		}
		places := map[int32]kgo.EpochOffset{}
		for partition, offset := range positions {
			places[partition] = kgo.EpochOffset{Epoch: -1, Offset: offset}
		}
		m.journal.positions("committing", positions)
		refused := m.send(places)
		if refused == nil {
			m.journal.committed(positions)
			return
		}
		m.journal.write("refused", refused)
		time.Sleep(millis(m.orders.PollMs))
	}
}

func (m *member) send(places map[int32]kgo.EpochOffset) (refused error) {
	m.client.CommitOffsetsSync(
		context.Background(),
		map[string]map[int32]kgo.EpochOffset{m.orders.Topic: places},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
			if refused = err; err != nil {
				return
			}
			for _, topic := range answer.Topics {
				for _, each := range topic.Partitions {
					if err := kerr.ErrorForCode(each.ErrorCode); err != nil {
						refused = err
					}
				}
			}
		},
	)
	return
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
