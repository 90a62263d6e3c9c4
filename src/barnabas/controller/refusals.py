"""Responses in which everything in a request has failed, for every request of a controller.

For errors of the whole request: not the controller, timed out, too large.
"""

from collections.abc import Callable
from typing import Any, Final

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages import brokers, configs, log_dirs, replicas, topics, transactions

Refuse = Callable[[Any, ErrorCode, str | None], object]


def refusal(request: object, code: ErrorCode, message: str | None = None) -> object:
    return REFUSALS[type(request)](request, code, message)


def _create_topics(request: topics.CreateTopicsRequest, code: ErrorCode, message: str | None) -> object:
    names = dict.fromkeys(topic.name for topic in request.topics)
    return topics.CreateTopicsResponse(
        topics=[
            topics.CreatableTopicResult(name=name, error_code=code, error_message=message) for name in names
        ]
    )


def _delete_topics(request: topics.DeleteTopicsRequest, code: ErrorCode, message: str | None) -> object:
    asked = [*(topics.DeleteTopicState(name=name) for name in request.topic_names), *request.topics]
    return topics.DeleteTopicsResponse(
        responses=[
            topics.DeletableTopicResult(
                name=one.name, topic_id=one.topic_id, error_code=code, error_message=message
            )
            for one in asked
        ]
    )


def _create_partitions(
    request: topics.CreatePartitionsRequest, code: ErrorCode, message: str | None
) -> object:
    names = dict.fromkeys(topic.name for topic in request.topics)
    return topics.CreatePartitionsResponse(
        results=[
            topics.CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)
            for name in names
        ]
    )


def _resources(
    request: configs.AlterConfigsRequest | configs.IncrementalAlterConfigsRequest,
    code: ErrorCode,
    message: str | None,
) -> list[configs.AlterConfigsResourceResponse]:
    return [
        configs.AlterConfigsResourceResponse(
            resource_type=one.resource_type,
            resource_name=one.resource_name,
            error_code=code,
            error_message=message,
        )
        for one in request.resources
    ]


def _alter_configs(request: configs.AlterConfigsRequest, code: ErrorCode, message: str | None) -> object:
    return configs.AlterConfigsResponse(responses=_resources(request, code, message))


def _incremental_alter_configs(
    request: configs.IncrementalAlterConfigsRequest, code: ErrorCode, message: str | None
) -> object:
    return configs.IncrementalAlterConfigsResponse(responses=_resources(request, code, message))


def _elect_leaders(request: replicas.ElectLeadersRequest, code: ErrorCode, message: str | None) -> object:
    return replicas.ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            replicas.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    replicas.PartitionResult(partition_id=number, error_code=code, error_message=message)
                    for number in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _update_features(request: brokers.UpdateFeaturesRequest, code: ErrorCode, message: str | None) -> object:
    return brokers.UpdateFeaturesResponse(error_code=code, error_message=message)


REFUSALS: Final[dict[type, Refuse]] = {
    topics.CreateTopicsRequest: _create_topics,
    topics.DeleteTopicsRequest: _delete_topics,
    topics.CreatePartitionsRequest: _create_partitions,
    configs.AlterConfigsRequest: _alter_configs,
    configs.IncrementalAlterConfigsRequest: _incremental_alter_configs,
    replicas.ElectLeadersRequest: _elect_leaders,
    replicas.AlterPartitionRequest: lambda _, code, __: replicas.AlterPartitionResponse(error_code=code),
    brokers.UpdateFeaturesRequest: _update_features,
    brokers.BrokerRegistrationRequest: lambda _, code, __: brokers.BrokerRegistrationResponse(
        error_code=code
    ),
    brokers.BrokerHeartbeatRequest: lambda _, code, __: brokers.BrokerHeartbeatResponse(error_code=code),
    brokers.UnregisterBrokerRequest: lambda _, code, message: brokers.UnregisterBrokerResponse(
        error_code=code, error_message=message
    ),
    brokers.ControllerRegistrationRequest: lambda _, code, message: brokers.ControllerRegistrationResponse(
        error_code=code, error_message=message
    ),
    transactions.AllocateProducerIdsRequest: lambda _, code, __: transactions.AllocateProducerIdsResponse(
        error_code=code
    ),
    log_dirs.AssignReplicasToDirsRequest: lambda _, code, __: log_dirs.AssignReplicasToDirsResponse(
        error_code=code
    ),
}
