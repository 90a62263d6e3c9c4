// sarama (github.com/IBM/sarama) as a client of the checklist.
package main

import (
	"errors"

	"barnabas/interop/clients/lines"

	"github.com/IBM/sarama"
)

func main() {
	lines.Program{Module: "github.com/IBM/sarama", Open: open, Refusal: refusal}.Serve()
}

func open(request lines.Request) (lines.Opened, error) {
	switch request.Op {
	case "open_producer":
		return openProducer(request)
	case "open_consumer":
		return openConsumer(request)
	case "open_member":
		return openMember(request)
	case "open_group_admin":
		return openGroupAdmin(request)
	default:
		return openAdmin(request)
	}
}

func codeOf(err error) *int16 {
	var found sarama.KError
	// It counts errors of its own, and what the broker calls unknown, below zero.
	if errors.As(err, &found) && found > 0 {
		code := int16(found)
		return &code
	}
	return nil
}

func refusal(err error) *lines.Refusal {
	return &lines.Refusal{Code: codeOf(err), Text: err.Error()}
}

func common(request lines.Request) *sarama.Config {
	config := sarama.NewConfig()
	// It speaks the protocol of the version that it is told, and looks no further by itself.
	config.Version = sarama.MaxVersion
	config.Metadata.Retry.Backoff = request.Reconnect()
	config.Metadata.Retry.Max = int(request.WaitMsMax / request.ReconnectMsMax)
	config.Metadata.Timeout = request.Wait()
	return config
}
