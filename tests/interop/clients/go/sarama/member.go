package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"barnabas/interop/clients/lines"

	"github.com/IBM/sarama"
)

// member is the handler of its own group: sarama calls it from goroutines of its own.
type member struct {
	group    sarama.ConsumerGroup
	topic    string
	wait     time.Duration
	moment   time.Duration
	messages chan *sarama.ConsumerMessage
	handed   lines.Handed
	cancel   context.CancelFunc
	ended    chan struct{}

	lock    sync.Mutex
	session sarama.ConsumerGroupSession
}

func openMember(request lines.Request) (lines.Opened, error) {
	config := common(request)
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Session.Timeout = lines.Millis(request.SessionMs)
	config.Consumer.Group.Heartbeat.Interval = lines.Millis(request.HeartbeatMs)
	config.Consumer.Group.Rebalance.Retry.Backoff = request.Reconnect()
	if request.Instance != nil {
		config.Consumer.Group.InstanceId = *request.Instance
	}
	group, err := sarama.NewConsumerGroup([]string{request.Address}, request.Group, config)
	if err != nil {
		return nil, err
	}
	m := &member{
		group:    group,
		topic:    request.Topic,
		wait:     request.Wait(),
		moment:   lines.Millis(request.MomentMs),
		messages: make(chan *sarama.ConsumerMessage),
		ended:    make(chan struct{}),
	}
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(context.Background())
	go m.consume(ctx)
	return m, nil
}

// consume joins again after every rebalance.
func (m *member) consume(ctx context.Context) {
	defer close(m.ended)
	for ctx.Err() == nil {
		err := m.group.Consume(ctx, []string{m.topic}, m)
		if errors.Is(err, sarama.ErrClosedConsumerGroup) {
			return
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// Setup is sarama's word for the start of a generation.
func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.session = session
	return nil
}

// Cleanup is its word for the end.
func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.session = nil
	return nil
}

// ConsumeClaim reads one partition for as long as the member has it.
func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			select {
			case m.messages <- message:
			case <-session.Context().Done():
				return nil
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *member) Do(request lines.Request) (any, error) {
	switch request.Op {
	case "partitions":
		m.work(time.After(m.moment), -1)
		return m.partitions(), nil
	case "read":
		m.work(time.After(m.wait), request.Count)
		if m.handed.Len() < request.Count {
			return nil, fmt.Errorf("%d of %d records came within %s", m.handed.Len(), request.Count, m.wait)
		}
		return m.handed.Take(request.Count), nil
	case "commit":
		return nil, m.commit()
	default:
		return lines.Unknown(request)
	}
}

// work takes what comes, until the time is over or so many are there.
func (m *member) work(timeout <-chan time.Time, count int) {
	for count < 0 || m.handed.Len() < count {
		select {
		case message := <-m.messages:
			m.handed.Add(seen(message))
		case <-timeout:
			return
		}
	}
}

func (m *member) partitions() []int32 {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.session == nil {
		return []int32{}
	}
	return append([]int32{}, m.session.Claims()[m.topic]...)
}

func (m *member) commit() error {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.session == nil {
		return errors.New("it has no partitions just now")
	}
	for partition, offset := range m.handed.Positions {
		m.session.MarkOffset(m.topic, partition, offset, "")
	}
	m.session.Commit()
	return nil
}

func (m *member) Close() {
	m.cancel()
	<-m.ended
	m.group.Close()
}
