package main

import (
	"fmt"

	"barnabas/interop/clients/lines"

	"github.com/IBM/sarama"
)

// With this the broker takes its own default.
const defaultReplicationFactor = -1

var sources = map[sarama.ConfigSource]string{
	sarama.SourceTopic:                "DYNAMIC_TOPIC_CONFIG",
	sarama.SourceDynamicBroker:        "DYNAMIC_BROKER_CONFIG",
	sarama.SourceDynamicDefaultBroker: "DYNAMIC_DEFAULT_BROKER_CONFIG",
	sarama.SourceStaticBroker:         "STATIC_BROKER_CONFIG",
	sarama.SourceDefault:              "DEFAULT_CONFIG",
}

type admin struct {
	// For offsets, which its admin does not ask for.
	client sarama.Client
	admin  sarama.ClusterAdmin
}

func openAdmin(request lines.Request) (lines.Opened, error) {
	config := common(request)
	config.Admin.Timeout = request.Wait()
	client, err := sarama.NewClient([]string{request.Address}, config)
	if err != nil {
		return nil, err
	}
	opened, err := sarama.NewClusterAdminFromClient(client)
	return &admin{client: client, admin: opened}, err
}

func (a *admin) Do(request lines.Request) (any, error) {
	switch request.Op {
	case "create_topic":
		return nil, a.createTopic(request)
	case "delete_topic":
		return nil, a.admin.DeleteTopic(request.Topic)
	case "add_partitions":
		return nil, a.admin.CreatePartitions(request.Topic, int32(request.Total), nil, false)
	case "delete_records":
		return a.deleteRecords(request)
	case "topic_settings":
		return a.settings(sarama.TopicResource, request.Topic)
	case "broker_settings":
		return a.settings(sarama.BrokerResource, fmt.Sprint(request.Broker))
	case "change_topic":
		return nil, a.change(sarama.TopicResource, request.Topic, request)
	case "change_broker":
		return nil, a.change(sarama.BrokerResource, fmt.Sprint(request.Broker), request)
	case "cluster":
		return a.cluster()
	case "topics":
		return a.topics()
	case "watermarks":
		return a.watermarks(request)
	case "offset_for_time":
		return a.offsetForTime(request)
	default:
		return lines.Unknown(request)
	}
}

func (a *admin) createTopic(request lines.Request) error {
	count, err := request.PartitionCount()
	if err != nil {
		return err
	}
	chosen := map[string]*string{}
	for name, value := range request.Settings {
		chosen[name] = &value
	}
	detail := &sarama.TopicDetail{
		NumPartitions: count, ReplicationFactor: defaultReplicationFactor, ConfigEntries: chosen,
	}
	return a.admin.CreateTopic(request.Topic, detail, false)
}

// deleteRecords asks for the low watermark afterwards, because sarama keeps the broker's answer to itself.
func (a *admin) deleteRecords(request lines.Request) (any, error) {
	place := map[int32]int64{*request.Partition: request.Before}
	if err := a.admin.DeleteRecords(request.Topic, place); err != nil {
		return nil, err
	}
	return a.client.GetOffset(request.Topic, *request.Partition, sarama.OffsetOldest)
}

func (a *admin) settings(kind sarama.ConfigResourceType, name string) (any, error) {
	found, err := a.admin.DescribeConfig(sarama.ConfigResource{Type: kind, Name: name})
	if err != nil {
		return nil, err
	}
	described := map[string]lines.Setting{}
	for _, each := range found {
		described[each.Name] = lines.Setting{Value: &each.Value, Source: sources[each.Source]}
	}
	return described, nil
}

func (a *admin) change(kind sarama.ConfigResourceType, name string, request lines.Request) error {
	changes := map[string]sarama.IncrementalAlterConfigsEntry{}
	for key, value := range request.Wanted {
		changes[key] = sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value,
		}
	}
	for _, key := range request.Removed {
		changes[key] = sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationDelete,
		}
	}
	return a.admin.IncrementalAlterConfig(kind, name, changes, false)
}

func (a *admin) cluster() (any, error) {
	found, controller, err := a.admin.DescribeCluster()
	if err != nil {
		return nil, err
	}
	brokers := map[int32]string{}
	for _, broker := range found {
		brokers[broker.ID()] = broker.Addr()
	}
	return lines.Cluster{Controller: controller, Brokers: brokers}, nil
}

func (a *admin) topics() (any, error) {
	found, err := a.admin.ListTopics()
	if err != nil {
		return nil, err
	}
	counts := map[string]int32{}
	for name, topic := range found {
		counts[name] = topic.NumPartitions
	}
	return counts, nil
}

func (a *admin) watermarks(request lines.Request) (any, error) {
	low, err := a.client.GetOffset(request.Topic, *request.Partition, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	high, err := a.client.GetOffset(request.Topic, *request.Partition, sarama.OffsetNewest)
	return [2]int64{low, high}, err
}

func (a *admin) offsetForTime(request lines.Request) (any, error) {
	found, err := a.client.GetOffset(request.Topic, *request.Partition, *request.TimestampMs)
	if err != nil || found < 0 {
		return nil, err
	}
	return found, nil
}

// Close closes the client that it was made of, too.
func (a *admin) Close() { a.admin.Close() }
