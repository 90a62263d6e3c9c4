"""`barnabas broker` with files that were made for Kafka: those that it ships, and one from production."""

import asyncio
from pathlib import Path

import pytest

from barnabas.base import properties
from barnabas.cli.main import main
from barnabas.client.admin import Admin, ConfigSource, broker_resource
from support.process.ports import free_port
from support.process.processes import started

FILES = Path(__file__).parents[1] / "fixtures" / "properties"
CLUSTER_ID = "8UFBlDBzRM2WGJual5ztlg"


def changes(data: Path) -> dict[str, str]:
    """The directory and the ports, which a test cannot take from a file."""
    port, controller = free_port(), free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}"
    return {"log.dirs": str(data), "listeners": listeners, "advertised.listeners": listeners}


async def described(address: str, node: int) -> dict[str, tuple[str | None, ConfigSource]]:
    async with Admin(bootstrap_servers=address) as admin:
        entries = await admin.describe_config(broker_resource(node))
    return {name: (one.value, one.source) for name, one in entries.items()}


@pytest.mark.parametrize("file", ["server.properties", "production.properties"])
def test_a_file_for_one_node_starts_without_a_warning_and_is_shown(file: str, tmp_path: Path) -> None:
    given = (FILES / file).read_text()
    changed = "".join(f"{name}={value}\n" for name, value in changes(tmp_path / "data").items())
    config = tmp_path / file
    config.write_text(given + changed)
    expected = properties.parse(config.read_bytes())
    voters = [] if "controller.quorum.voters" in expected else ["--no-initial-controllers"]
    assert main(["storage", "format", "-t", CLUSTER_ID, "-c", str(config), *voters]) == 0

    with started(tmp_path / "err.txt", "broker", str(config), "--log-level", "warning") as broker:
        [address] = broker.ready()
        shown = asyncio.run(described(address, 1))
        ended = broker.stop()

    assert ended == (0, "", "")
    assert {name: shown[name][0] for name in expected} == expected
    # Formatting sets it for the whole cluster, because eligible leader replicas (KIP-966) depend on it.
    elsewhere = expected.keys() & {"min.insync.replicas"}
    sources = {shown[name][1] for name in expected.keys() - elsewhere}
    assert sources == {ConfigSource.STATIC_BROKER_CONFIG}


@pytest.mark.parametrize("file", ["broker.properties", "controller.properties"])
def test_a_file_for_a_node_with_one_role_is_refused_for_its_role_alone(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["broker", str(FILES / file)])

    role = file.removesuffix(".properties")
    assert code == 1
    assert capsys.readouterr().err == (
        f"barnabas broker: {FILES / file}: process.roles={role}: must be broker,controller: "
        "a node with one role is not built yet\n"
    )
