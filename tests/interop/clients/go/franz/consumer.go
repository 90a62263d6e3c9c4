package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"barnabas/interop/clients/lines"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type consumer struct {
	client *kgo.Client
	wait   time.Duration
	// Closed when the first fetch is sent, which is when the positions are known.
	fetching chan struct{}
	once     sync.Once
}

func openConsumer(request lines.Request) (lines.Opened, error) {
	c := &consumer{wait: request.Wait(), fetching: make(chan struct{})}
	partitions, err := request.PartitionList()
	if err != nil {
		return nil, err
	}
	places := map[int32]kgo.Offset{}
	for _, partition := range partitions {
		places[partition] = startOf(request.Start)
	}
	options := append(common(request),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{request.Topic: places}),
		kgo.WithHooks(c),
	)
	if request.OutOfRange == "fail" {
		options = append(options, kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	} else {
		options = append(options, kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	}
	if request.Committed {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if limit := request.FetchBytesMax; limit != nil {
		options = append(options, kgo.FetchMaxBytes(*limit), kgo.FetchMaxPartitionBytes(*limit))
	}
	c.client, err = kgo.NewClient(options...)
	return c, err
}

func startOf(start lines.Start) kgo.Offset {
	switch start.At {
	case "beginning":
		return kgo.NewOffset().AtStart()
	case "end":
		return kgo.NewOffset().AtEnd()
	case "time":
		return kgo.NewOffset().AfterMilli(start.TimestampMs)
	default:
		return kgo.NewOffset().At(start.Offset)
	}
}

// OnBrokerWrite is franz-go's hook for requests that are sent.
func (c *consumer) OnBrokerWrite(
	_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error,
) {
	if key == kmsg.Fetch.Int16() && err == nil {
		c.once.Do(func() { close(c.fetching) })
	}
}

func (c *consumer) Do(request lines.Request) (any, error) {
	ctx, cancel := until(c.wait)
	defer cancel()
	switch request.Op {
	case "settle":
		return nil, c.settle(ctx)
	case "read":
		return c.read(ctx, request.Count)
	default:
		return lines.Unknown(request)
	}
}

func (c *consumer) settle(ctx context.Context) error {
	select {
	case <-c.fetching:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the position is unknown: %w", context.Cause(ctx))
	}
}

func (c *consumer) read(ctx context.Context, count int) (any, error) {
	found := []lines.Record{}
	for len(found) < count {
		fetches := c.client.PollRecords(ctx, count-len(found))
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%d of %d records came: %w", len(found), count, context.Cause(ctx))
		}
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(record *kgo.Record) { found = append(found, seen(record)) })
	}
	return found, nil
}

func seen(record *kgo.Record) lines.Record {
	headers := []lines.Header{}
	for _, header := range record.Headers {
		headers = append(headers, lines.Header{Name: header.Key, Value: header.Value})
	}
	kind := record.Attrs.TimestampType()
	return lines.Record{
		Partition:     record.Partition,
		Offset:        record.Offset,
		TimestampMs:   record.Timestamp.UnixMilli(),
		TimestampType: &kind,
		Key:           record.Key,
		Value:         record.Value,
		Headers:       headers,
	}
}

func (c *consumer) Close() { c.client.Close() }
