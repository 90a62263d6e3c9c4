package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"barnabas/interop/clients/lines"

	"github.com/IBM/sarama"
)

type consumer struct {
	client   sarama.Client
	consumer sarama.Consumer
	wait     time.Duration
	messages chan *sarama.ConsumerMessage
	errors   chan error
	closed   chan struct{}
}

func openConsumer(request lines.Request) (lines.Opened, error) {
	partitions, err := request.PartitionList()
	if err != nil {
		return nil, err
	}
	client, err := sarama.NewClient([]string{request.Address}, consumerConfig(request))
	if err != nil {
		return nil, err
	}
	opened, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, err
	}
	c := &consumer{
		client:   client,
		consumer: opened,
		wait:     request.Wait(),
		messages: make(chan *sarama.ConsumerMessage),
		errors:   make(chan error),
		closed:   make(chan struct{}),
	}
	for _, partition := range partitions {
		if err := c.start(request, partition); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

func consumerConfig(request lines.Request) *sarama.Config {
	config := common(request)
	config.Consumer.Return.Errors = true
	config.Consumer.Retry.Backoff = request.Reconnect()
	if request.Committed {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	if limit := request.FetchBytesMax; limit != nil {
		config.Consumer.Fetch.Default = *limit
		config.Consumer.Fetch.MaxBytes = *limit
	}
	return config
}

// start begins to read a partition; sarama finds the position before it returns. It has no setting for an offset
// that is not there, so whoever wants to begin again asks again.
func (c *consumer) start(request lines.Request, partition int32) error {
	offset := request.Start.Offset
	switch request.Start.At {
	case "beginning":
		offset = sarama.OffsetOldest
	case "end":
		offset = sarama.OffsetNewest
	case "time":
		found, err := c.client.GetOffset(request.Topic, partition, request.Start.TimestampMs)
		if err != nil {
			return err
		}
		offset = found
	}
	reader, err := c.consumer.ConsumePartition(request.Topic, partition, offset)
	if errors.Is(err, sarama.ErrOffsetOutOfRange) && request.OutOfRange == "earliest" {
		reader, err = c.consumer.ConsumePartition(request.Topic, partition, sarama.OffsetOldest)
	}
	if err != nil {
		return err
	}
	go c.forward(reader)
	return nil
}

// forward brings the partitions together, each in its order.
func (c *consumer) forward(reader sarama.PartitionConsumer) {
	go func() {
		for err := range reader.Errors() {
			if errors.Is(err, sarama.ErrOffsetOutOfRange) {
				c.errors <- err
				continue
			}
			// A broker that is away: sarama says so and tries again.
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	for message := range reader.Messages() {
		select {
		case c.messages <- message:
		case <-c.closed:
		}
	}
}

func (c *consumer) Do(request lines.Request) (any, error) {
	switch request.Op {
	case "settle":
		return nil, nil
	case "read":
		return c.read(request.Count)
	default:
		return lines.Unknown(request)
	}
}

func (c *consumer) read(count int) (any, error) {
	found := []lines.Record{}
	timeout := time.After(c.wait)
	for len(found) < count {
		select {
		case message := <-c.messages:
			found = append(found, seen(message))
		case err := <-c.errors:
			return nil, err
		case <-timeout:
			return nil, fmt.Errorf("%d of %d records came within %s", len(found), count, c.wait)
		}
	}
	return found, nil
}

func seen(message *sarama.ConsumerMessage) lines.Record {
	headers := []lines.Header{}
	for _, header := range message.Headers {
		headers = append(headers, lines.Header{Name: string(header.Key), Value: header.Value})
	}
	return lines.Record{
		Partition:   message.Partition,
		Offset:      message.Offset,
		TimestampMs: message.Timestamp.UnixMilli(),
		// sarama does not show who has set the time.
		TimestampType: nil,
		Key:           message.Key,
		Value:         message.Value,
		Headers:       headers,
	}
}

func (c *consumer) Close() {
	close(c.closed)
	c.consumer.Close()
	c.client.Close()
}
