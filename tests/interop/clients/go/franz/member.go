package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"barnabas/interop/clients/lines"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type member struct {
	client *kgo.Client
	topic  string
	wait   time.Duration
	moment time.Duration
	handed lines.Handed
	// franz-go tells what it has from a goroutine of its own.
	lock sync.Mutex
	has  map[int32]bool
}

func openMember(request lines.Request) (lines.Opened, error) {
	m := &member{
		topic: request.Topic, wait: request.Wait(), moment: lines.Millis(request.MomentMs), has: map[int32]bool{},
	}
	options := append(common(request),
		kgo.ConsumerGroup(request.Group),
		kgo.ConsumeTopics(request.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(m.changed(true)),
		kgo.OnPartitionsRevoked(m.changed(false)),
		kgo.OnPartitionsLost(m.changed(false)),
	)
	if request.Protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	} else {
		options = append(options,
			kgo.SessionTimeout(lines.Millis(request.SessionMs)),
			kgo.HeartbeatInterval(lines.Millis(request.HeartbeatMs)),
		)
	}
	if request.Instance != nil {
		options = append(options, kgo.InstanceID(*request.Instance))
	}
	var err error
	m.client, err = kgo.NewClient(options...)
	return m, err
}

func (m *member) changed(given bool) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		m.lock.Lock()
		defer m.lock.Unlock()
		for _, partition := range partitions[m.topic] {
			if given {
				m.has[partition] = true
			} else {
				delete(m.has, partition)
			}
		}
	}
}

func (m *member) Do(request lines.Request) (any, error) {
	switch request.Op {
	case "partitions":
		if err := m.work(); err != nil {
			return nil, err
		}
		return m.partitions(), nil
	case "read":
		return m.read(request.Count)
	case "commit":
		return nil, m.commit()
	default:
		return lines.Unknown(request)
	}
}

// work polls for a moment.
func (m *member) work() error {
	ctx, cancel := until(m.moment)
	defer cancel()
	fetches := m.client.PollFetches(ctx)
	fetches.EachRecord(func(record *kgo.Record) { m.handed.Add(seen(record)) })
	for _, found := range fetches.Errors() {
		if !errors.Is(found.Err, context.DeadlineExceeded) {
			return found.Err
		}
	}
	return nil
}

func (m *member) partitions() []int32 {
	m.lock.Lock()
	defer m.lock.Unlock()
	found := []int32{}
	for partition := range m.has {
		found = append(found, partition)
	}
	return found
}

func (m *member) read(count int) (any, error) {
	deadline := time.Now().Add(m.wait)
	for m.handed.Len() < count {
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%d of %d records came within %s", m.handed.Len(), count, m.wait)
		}
		if err := m.work(); err != nil {
			return nil, err
		}
	}
	return m.handed.Take(count), nil
}

func (m *member) commit() error {
	ctx, cancel := until(m.wait)
	defer cancel()
	places := map[int32]kgo.EpochOffset{}
	for partition, offset := range m.handed.Positions {
		places[partition] = kgo.EpochOffset{Epoch: -1, Offset: offset}
	}
	var refused error
	m.client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{m.topic: places},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
			refused = err
			if answer == nil {
				return
			}
			for _, topic := range answer.Topics {
				for _, partition := range topic.Partitions {
					if found := kerr.ErrorForCode(partition.ErrorCode); found != nil {
						refused = found
					}
				}
			}
		})
	return refused
}

// Close leaves the group; franz-go does not say that a static member goes.
func (m *member) Close() { m.client.Close() }
