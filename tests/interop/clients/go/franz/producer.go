package main

import (
	"fmt"
	"time"

	"barnabas/interop/clients/lines"

	"github.com/twmb/franz-go/pkg/kgo"
)

// More than any story sends, so that a broker that is away does not make sending wait.
const messagesMax = 100_000

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

var acks = map[int]kgo.Acks{0: kgo.NoAck(), 1: kgo.LeaderAck(), -1: kgo.AllISRAcks()}

type producer struct {
	client     *kgo.Client
	acks       int
	giveUp     time.Duration
	wait       time.Duration
	deliveries []*lines.Delivery
}

func openProducer(request lines.Request) (lines.Opened, error) {
	options := append(common(request),
		kgo.DefaultProduceTopic(request.Topic),
		kgo.ProducerBatchCompression(codecs[request.Codec]),
		kgo.RequiredAcks(acks[request.Acks]),
		kgo.ProducerLinger(time.Duration(request.LingerMs)*time.Millisecond),
		kgo.ProducerBatchMaxBytes(request.BatchBytesMax),
		kgo.MaxBufferedRecords(messagesMax),
		kgo.RecordPartitioner(partitioner{kgo.StickyKeyPartitioner(nil)}),
		kgo.AllowAutoTopicCreation(),
	)
	if !request.Idempotent {
		// It then has one request in flight at a time, so a retry does not pass its neighbour.
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	giveUp := time.Duration(request.GiveUpAfterMs) * time.Millisecond
	return &producer{client: client, acks: request.Acks, giveUp: giveUp, wait: request.Wait()}, nil
}

func (p *producer) Do(request lines.Request) (any, error) {
	switch request.Op {
	case "send":
		p.send(request)
		return nil, nil
	case "finish":
		return p.finish()
	default:
		return lines.Unknown(request)
	}
}

func (p *producer) send(request lines.Request) {
	record := &kgo.Record{Key: request.Key, Value: request.Value, Partition: chosenByClient}
	if request.Partition != nil {
		record.Partition = *request.Partition
	}
	if request.TimestampMs != nil {
		record.Timestamp = time.UnixMilli(*request.TimestampMs)
	}
	for _, header := range request.Headers {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
	}
	delivery := &lines.Delivery{}
	p.deliveries = append(p.deliveries, delivery)
	// Its own time limit for a delivery counts from the timestamp of the record, which may be long ago.
	ctx, cancel := until(p.giveUp)
	p.client.Produce(ctx, record, func(written *kgo.Record, err error) {
		cancel()
		if err != nil {
			delivery.Error = refusal(err)
			return
		}
		delivery.Partition = &written.Partition
		if p.acks != 0 {
			delivery.Offset = &written.Offset
		}
	})
}

func (p *producer) finish() (any, error) {
	ctx, cancel := until(p.wait)
	defer cancel()
	if err := p.client.Flush(ctx); err != nil {
		return nil, fmt.Errorf("%d messages are neither delivered nor refused: %w",
			p.client.BufferedProduceRecords(), err)
	}
	return p.deliveries, nil
}

func (p *producer) Close() { p.client.Close() }

const chosenByClient = -1

// partitioner leaves to franz-go what the message does not say.
type partitioner struct{ kgo.Partitioner }

type topicPartitioner struct{ kgo.TopicPartitioner }

func (p partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return topicPartitioner{p.Partitioner.ForTopic(topic)}
}

func (p topicPartitioner) RequiresConsistency(record *kgo.Record) bool {
	return record.Partition != chosenByClient || p.TopicPartitioner.RequiresConsistency(record)
}

func (p topicPartitioner) Partition(record *kgo.Record, partitions int) int {
	if record.Partition != chosenByClient {
		return int(record.Partition)
	}
	return p.TopicPartitioner.Partition(record, partitions)
}
