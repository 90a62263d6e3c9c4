package main

import (
	"context"
	"fmt"
	"time"

	"barnabas/interop/clients/lines"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// With this the broker takes its own default.
const defaultReplicationFactor = -1

type admin struct {
	client *kadm.Client
	wait   time.Duration
}

func openAdmin(request lines.Request) (lines.Opened, error) {
	client, err := kgo.NewClient(common(request)...)
	if err != nil {
		return nil, err
	}
	return &admin{client: kadm.NewClient(client), wait: request.Wait()}, nil
}

func (a *admin) Do(request lines.Request) (any, error) {
	ctx, cancel := until(a.wait)
	defer cancel()
	switch request.Op {
	case "create_topic", "delete_topic", "add_partitions", "delete_records":
		return a.change(ctx, request)
	case "topic_settings":
		return settings(a.client.DescribeTopicConfigs(ctx, request.Topic))
	case "broker_settings":
		return settings(a.client.DescribeBrokerConfigs(ctx, request.Broker))
	case "change_topic":
		return altered(a.client.AlterTopicConfigs(ctx, changes(request), request.Topic))
	case "change_broker":
		return altered(a.client.AlterBrokerConfigs(ctx, changes(request), request.Broker))
	case "cluster":
		return a.cluster(ctx)
	case "topics":
		return a.topics(ctx)
	case "watermarks":
		return a.watermarks(ctx, request.Topic, *request.Partition)
	case "offset_for_time":
		return a.offsetForTime(ctx, request.Topic, *request.Partition, *request.TimestampMs)
	default:
		return lines.Unknown(request)
	}
}

func (a *admin) change(ctx context.Context, request lines.Request) (any, error) {
	switch request.Op {
	case "create_topic":
		chosen := map[string]*string{}
		for name, value := range request.Settings {
			chosen[name] = &value
		}
		count, err := request.PartitionCount()
		if err != nil {
			return nil, err
		}
		_, err = a.client.CreateTopic(ctx, count, defaultReplicationFactor, chosen, request.Topic)
		return nil, err
	case "delete_topic":
		_, err := a.client.DeleteTopic(ctx, request.Topic)
		return nil, err
	case "add_partitions":
		done, err := a.client.UpdatePartitions(ctx, request.Total, request.Topic)
		if err != nil {
			return nil, err
		}
		return nil, done[request.Topic].Err
	default:
		place := kadm.Offsets{}
		place.AddOffset(request.Topic, *request.Partition, request.Before, -1)
		done, err := a.client.DeleteRecords(ctx, place)
		if err != nil {
			return nil, err
		}
		found := done[request.Topic][*request.Partition]
		return found.LowWatermark, found.Err
	}
}

func settings(found kadm.ResourceConfigs, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	described := map[string]lines.Setting{}
	for _, resource := range found {
		if resource.Err != nil {
			return nil, resource.Err
		}
		for _, each := range resource.Configs {
			described[each.Key] = lines.Setting{Value: each.Value, Source: each.Source.String()}
		}
	}
	return described, nil
}

func changes(request lines.Request) []kadm.AlterConfig {
	var found []kadm.AlterConfig
	for name, value := range request.Wanted {
		found = append(found, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
	}
	for _, name := range request.Removed {
		found = append(found, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: name})
	}
	return found
}

func altered(done kadm.AlterConfigsResponses, err error) (any, error) {
	for _, each := range done {
		if err == nil && each.Err != nil {
			err = fmt.Errorf("%w: %s", each.Err, each.ErrMessage)
		}
	}
	return nil, err
}

func (a *admin) cluster(ctx context.Context) (any, error) {
	found, err := a.client.BrokerMetadata(ctx)
	if err != nil {
		return nil, err
	}
	brokers := map[int32]string{}
	for _, broker := range found.Brokers {
		brokers[broker.NodeID] = fmt.Sprintf("%s:%d", broker.Host, broker.Port)
	}
	return lines.Cluster{ClusterID: &found.Cluster, Controller: found.Controller, Brokers: brokers}, nil
}

func (a *admin) topics(ctx context.Context) (any, error) {
	found, err := a.client.ListTopics(ctx)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for name, topic := range found {
		counts[name] = len(topic.Partitions)
	}
	return counts, nil
}

func (a *admin) watermarks(ctx context.Context, topic string, partition int32) (any, error) {
	low, err := listed(a.client.ListStartOffsets(ctx, topic))(topic, partition)
	if err != nil {
		return nil, err
	}
	high, err := listed(a.client.ListEndOffsets(ctx, topic))(topic, partition)
	return [2]int64{low.Offset, high.Offset}, err
}

func (a *admin) offsetForTime(ctx context.Context, topic string, partition int32, ms int64) (any, error) {
	found, err := listed(a.client.ListOffsetsAfterMilli(ctx, ms, topic))(topic, partition)
	if err != nil || found.Timestamp < 0 {
		// Where all records are older, it names the end of the partition and no time.
		return nil, err
	}
	return found.Offset, nil
}

func listed(found kadm.ListedOffsets, err error) func(string, int32) (kadm.ListedOffset, error) {
	return func(topic string, partition int32) (kadm.ListedOffset, error) {
		if err != nil {
			return kadm.ListedOffset{}, err
		}
		place, ok := found.Lookup(topic, partition)
		if !ok {
			return place, fmt.Errorf("nothing is said about %s-%d", topic, partition)
		}
		return place, place.Err
	}
}

func (a *admin) Close() { a.client.Close() }
