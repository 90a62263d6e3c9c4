package main

import (
	"fmt"
	"time"

	"barnabas/interop/clients/lines"

	"github.com/IBM/sarama"
)

// More than any story sends: sarama takes no more while it looks for its broker, so they wait in line here.
const messagesMax = 100_000

const chosenByClient = -1

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

type producer struct {
	topic    string
	acks     int
	wait     time.Duration
	producer sarama.AsyncProducer
	waiting  chan *sarama.ProducerMessage
	sent     int
	answers  chan answer
}

// answer is what became of the message with that number.
type answer struct {
	number   int
	delivery lines.Delivery
}

func openProducer(request lines.Request) (lines.Opened, error) {
	opened, err := sarama.NewAsyncProducer([]string{request.Address}, producerConfig(request))
	if err != nil {
		return nil, err
	}
	p := &producer{
		topic:    request.Topic,
		acks:     request.Acks,
		wait:     request.Wait(),
		producer: opened,
		waiting:  make(chan *sarama.ProducerMessage, messagesMax),
		answers:  make(chan answer, messagesMax),
	}
	go p.feed()
	go p.collectSuccesses()
	go p.collectErrors()
	return p, nil
}

func producerConfig(request lines.Request) *sarama.Config {
	config := common(request)
	config.Producer.RequiredAcks = sarama.RequiredAcks(request.Acks)
	config.Producer.Compression = codecs[request.Codec]
	config.Producer.Idempotent = request.Idempotent
	// It demands this of an idempotent producer; and any other's retry may pass its neighbour.
	config.Net.MaxOpenRequests = 1
	// There is no time limit for a message: it is tried so many times, with a pause after each.
	config.Producer.Retry.Backoff = request.Reconnect()
	config.Producer.Retry.Max = int(request.GiveUpAfterMs / request.ReconnectMsMax)
	config.Metadata.Retry.Max = config.Producer.Retry.Max
	config.Producer.Flush.Frequency = time.Duration(request.LingerMs) * time.Millisecond
	config.Producer.MaxMessageBytes = int(request.BatchBytesMax)
	config.Producer.Partitioner = func(topic string) sarama.Partitioner {
		return partitioner{sarama.NewHashPartitioner(topic)}
	}
	config.Producer.Return.Successes = true
	return config
}

func (p *producer) Do(request lines.Request) (any, error) {
	switch request.Op {
	case "send":
		return nil, p.send(request)
	case "finish":
		return p.finish()
	default:
		return lines.Unknown(request)
	}
}

func (p *producer) send(request lines.Request) error {
	message := &sarama.ProducerMessage{Topic: p.topic, Partition: chosenByClient, Metadata: p.sent}
	if request.Key != nil {
		message.Key = sarama.ByteEncoder(request.Key)
	}
	if request.Value != nil {
		message.Value = sarama.ByteEncoder(request.Value)
	}
	if request.Partition != nil {
		message.Partition = *request.Partition
	}
	if request.TimestampMs != nil {
		message.Timestamp = time.UnixMilli(*request.TimestampMs)
	}
	for _, header := range request.Headers {
		message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
	}
	select {
	case p.waiting <- message:
		p.sent++
		return nil
	default:
		return fmt.Errorf("%d messages wait already", messagesMax)
	}
}

func (p *producer) feed() {
	for message := range p.waiting {
		p.producer.Input() <- message
	}
}

func (p *producer) collectSuccesses() {
	for message := range p.producer.Successes() {
		delivery := lines.Delivery{Partition: &message.Partition}
		if p.acks != 0 {
			delivery.Offset = &message.Offset
		}
		p.answers <- answer{message.Metadata.(int), delivery}
	}
}

func (p *producer) collectErrors() {
	for failure := range p.producer.Errors() {
		p.answers <- answer{failure.Msg.Metadata.(int), lines.Delivery{Error: refusal(failure.Err)}}
	}
}

// finish waits for the answers and then closes: a producer that is closed before does not try again.
func (p *producer) finish() (any, error) {
	found := make([]lines.Delivery, p.sent)
	timeout := time.After(p.wait)
	for number := range p.sent {
		select {
		case each := <-p.answers:
			found[each.number] = each.delivery
		case <-timeout:
			return nil, fmt.Errorf("%d of %d messages are answered within %s", number, p.sent, p.wait)
		}
	}
	p.producer.AsyncClose()
	return found, nil
}

// Close drops what is left with the process, because sarama's own Close would wait for it.
func (p *producer) Close() {}

// partitioner leaves to sarama what the message does not say.
type partitioner struct{ sarama.Partitioner }

func (p partitioner) Partition(message *sarama.ProducerMessage, partitions int32) (int32, error) {
	if message.Partition != chosenByClient {
		return message.Partition, nil
	}
	return p.Partitioner.Partition(message, partitions)
}
