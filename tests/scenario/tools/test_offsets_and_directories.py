"""`barnabas get-offsets`, `log-dirs`, `cluster` and `broker-api-versions` against our broker."""

import asyncio
import json
from pathlib import Path

import pytest

from barnabas.client import Producer
from support.process.our_broker import OurBroker
from support.process.processes import Ended
from support.process.tool_runs import Tools, run_tool, without_ids


@pytest.fixture
def orders(tool: Tools) -> None:
    """Two partitions, with three records in the first, at 1000, 3000 and 2000."""
    assert tool("topics", "--create", "--topic", "orders", "--partitions", "2").code == 0
    assert tool("topics", "--create", "--topic", "plain").code == 0

    async def produce() -> None:
        async with Producer(bootstrap_servers=tool.address, linger_ms=0) as producer:
            for time in (1000, 3000, 2000):
                await (await producer.send("orders", b"v", partition=0, timestamp_ms=time))

    asyncio.run(produce())


# get-offsets


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("", "orders:0:3 orders:1:0 plain:0:0"),
        ("--topic ord.*", "orders:0:3 orders:1:0"),
        ("--topic orders --partitions 1", "orders:1:0"),
        ("--topic-partitions orders:1-,plain:0", "orders:1:0 plain:0:0"),
        ("--exclude-internal-topics", "orders:0:3 orders:1:0 plain:0:0"),
        ("--topic orders --time earliest", "orders:0:0 orders:1:0"),
        ("--topic orders --time -2", "orders:0:0 orders:1:0"),
        ("--topic orders --time max-timestamp", "orders:0:1"),
        ("--topic orders --time 1001", "orders:0:1"),
        ("--topic orders --time 3001", ""),
        ("--topic orders --time earliest-local", "orders:0:0 orders:1:0"),
        ("--topic orders --time latest-tiered", ""),
    ],
)
@pytest.mark.usefixtures("orders")
def test_offsets_are_a_line_for_each_partition_that_has_one(tool: Tools, words: str, lines: str) -> None:
    assert tool("get-offsets", *words.split()) == Ended(0, "".join(f"{line}\n" for line in lines.split()), "")


@pytest.mark.usefixtures("orders")
def test_offsets_as_json_have_a_timestamp(tool: Tools) -> None:
    ended = tool("get-offsets", "--topic", "orders", "--time", "1500", "--json")

    assert json.loads(ended.out) == {
        "offsets": [{"topic": "orders", "partition": 0, "offset": 1, "timestamp": 3000, "leaderEpoch": 0}]
    }


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--topic nowhere", "Could not match any topic-partitions with the specified filters"),
        ("--topic orders --partitions 9", "Could not match any topic-partitions with the specified filters"),
        (
            "--topic a --topic-partitions a:0",
            "--topic-partitions cannot be used with --topic or --partitions",
        ),
        ("--no-such-flag", "no-such-flag is not a recognized option"),
    ],
)
@pytest.mark.usefixtures("orders")
def test_an_error_of_get_offsets_is_one_line(tool: Tools, words: str, why: str) -> None:
    assert tool("get-offsets", *words.split()) == Ended(1, "", f"Error occurred: {why}\n")


def test_get_offsets_needs_a_broker() -> None:
    ended = run_tool("get-offsets", "--topic", "a")

    assert (ended.code, ended.err.splitlines()[0]) == (1, 'Missing required argument "[bootstrap-server]"')


# log-dirs


@pytest.mark.usefixtures("orders")
def test_log_directories_are_two_lines_and_a_document(tool: Tools, broker: OurBroker) -> None:
    first, second, document = tool("log-dirs", "--describe", "--topic-list", "orders").out.splitlines()

    assert first == "Querying brokers for log directories information"
    assert second == "Received log directory information from brokers 1"
    sizes = [(broker.logs / f"orders-{number}/00000000000000000000.log").stat().st_size for number in (0, 1)]
    assert sizes[0] > 0
    partitions = ",".join(
        f'{{"partition":"orders-{number}","size":{size},"offsetLag":0,"isFuture":false}}'
        for number, size in enumerate(sizes)
    )
    assert document == (
        f'{{"brokers":[{{"broker":1,"logDirs":[{{"partitions":[{partitions}],"error":null,'
        f'"logDir":"{broker.logs}"}}]}}],"version":1}}'
    )


def test_log_directories_as_json_are_one_document_with_disk_sizes(tool: Tools) -> None:
    ended = tool("log-dirs", "--describe", "--broker-list", "1", "--json")

    [broker] = json.loads(ended.out)["brokers"]
    [directory] = broker["logDirs"]
    assert directory["totalBytes"] >= directory["usableBytes"] > 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            "--describe --broker-list 1,7",
            "ERROR: The given brokers do not exist from --broker-list: 7. Current existent brokers: 1",
        ),
        ("--describe --broker-list a", 'For input string: "a"'),
        ("--topic-list a", 'Missing required argument "[describe]"'),
    ],
)
def test_log_dirs_reports_errors_first(tool: Tools, words: str, why: str) -> None:
    ended = tool("log-dirs", *words.split())

    assert (ended.code, ended.out, ended.err.splitlines()[0]) == (1, "", why)


# cluster


def cluster(tool: Tools, command: str, *words: str) -> Ended:
    return run_tool("cluster", command, "--bootstrap-server", tool.address, *words)


def test_cluster_id_is_printed(tool: Tools, broker: OurBroker) -> None:
    meta = dict(
        line.split("=", 1)
        for line in (broker.logs / "meta.properties").read_text().splitlines()
        if "=" in line
    )

    assert cluster(tool, "cluster-id") == Ended(0, f"Cluster ID: {meta['cluster.id']}\n", "")
    assert json.loads(cluster(tool, "cluster-id", "--json").out) == {"clusterId": meta["cluster.id"]}


@pytest.mark.parametrize("words", [(), ("--include-fenced-brokers",)])
def test_endpoints_are_a_table(tool: Tools, broker: OurBroker, words: tuple[str, ...]) -> None:
    assert cluster(tool, "list-endpoints", *words).out == (
        "ID         HOST      PORT       RACK       STATE      ENDPOINT_TYPE  \n"
        f"1          127.0.0.1 {broker.port:<10} null       unfenced   broker         \n"
    )
    assert json.loads(cluster(tool, "list-endpoints", "--json", *words).out) == {
        "nodes": [{"id": 1, "host": "127.0.0.1", "port": broker.port, "rack": None, "state": "unfenced"}]
    }


def test_an_unknown_broker_cannot_be_unregistered(tool: Tools) -> None:
    assert cluster(tool, "unregister", "--id", "7") == Ended(
        1, "", "Broker ID 7 is not currently registered\n"
    )


def test_the_deprecated_config_option_prints_a_warning(tool: Tools, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("request.timeout.ms=5000\n")

    ended = cluster(tool, "cluster-id", "--config", str(path))

    assert (ended.code, ended.err) == (0, "")
    assert without_ids(ended.out) == (
        "Option --config has been deprecated and will be removed in a future version."
        " Use --command-config instead.\nCluster ID: ID\n"
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("", "the following arguments are required: COMMAND"),
        ("foo", "argument COMMAND: invalid choice: 'foo'"),
        ("cluster-id", "one of the arguments --bootstrap-server/-b --bootstrap-controller/-C is required"),
        ("unregister -b x:1", "the following arguments are required: --id/-i"),
        ("unregister -b x:1 --id x", "argument --id/-i: invalid integer value: 'x'"),
        ("cluster-id -b x:1 -C x:1", "not allowed with argument --bootstrap-server/-b"),
    ],
)
def test_cluster_exits_with_one_when_it_is_misused(words: str, why: str) -> None:
    ended = run_tool("cluster", *words.split())

    assert (ended.code, ended.out) == (1, "")
    assert why in ended.err


# broker-api-versions


def test_api_versions_are_a_block_for_each_broker(tool: Tools, broker: OurBroker) -> None:
    out = tool("broker-api-versions").out.splitlines()

    assert out[0] == f"127.0.0.1:{broker.port} (id: 1 rack: null isFenced: false) -> ("
    assert out[1] == "\tProduce(0): 0 to 13 [usable: 13],"
    assert "\tDescribeTopicPartitions(75): 0 [usable: 0]," in out
    assert "\tPushTelemetry(72): UNSUPPORTED," in out
    assert out[-2:] == ["\tDeleteShareGroupOffsets(92): UNSUPPORTED", ")"]


def test_api_versions_as_json_have_the_brokers_versions(tool: Tools, broker: OurBroker) -> None:
    [node] = json.loads(tool("broker-api-versions", "--json").out)["brokers"]

    assert (node["id"], node["port"]) == (1, broker.port)
    assert {"key": 1, "name": "Fetch", "minVersion": 4, "maxVersion": 18} in node["apis"]
