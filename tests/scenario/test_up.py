"""`barnabas up` and `barnabas broker` as processes: output, exit codes and errors."""

import json
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from barnabas.cli.main import main
from support.process.processes import Running, run_to_end, started

TAKEN = "the address is in use; stop the program that listens on it, or use another port"


@pytest.fixture
def err(tmp_path: Path) -> Path:
    return tmp_path / "stderr.txt"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def reach(address: str) -> None:
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=30).close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_ready_once_serves_and_stops_cleanly(data: Path, err: Path, number: signal.Signals) -> None:
    with started(err, "up", "--dir", str(data), "--port", "0") as up:
        [address] = up.ready()
        reach(address)

        ended = up.stop(number)

    assert (ended.code, ended.out) == (0, "")
    assert f"stopping signal={number.name}" in ended.err
    assert "Traceback" not in ended.err
    assert (data / ".kafka_cleanshutdown").exists()


def test_a_second_start_on_the_same_directory_is_the_same_cluster(data: Path, err: Path) -> None:
    for _ in range(2):
        with started(err, "up", "--dir", str(data), "--port", "0") as up:
            up.ready()
            meta = (data / "meta.properties").read_text()
            assert up.stop().code == 0

    assert (data / "meta.properties").read_text() == meta
    assert "formatted" not in err.read_text()


def test_a_directory_in_use_is_an_error_of_one_line(data: Path, err: Path, tmp_path: Path) -> None:
    with started(err, "up", "--dir", str(data), "--port", "0") as first:
        [address] = first.ready()

        second = run_to_end(tmp_path / "second.txt", "up", "--dir", str(data), "--port", "0")

        reach(address)
        assert first.stop().code == 0
    assert second.code == 1
    assert second.out == ""
    assert second.err == (
        f"barnabas up: log directory {data} is in use: another broker has locked .lock; "
        "stop that broker or use another directory\n"
    )


def test_a_port_in_use_is_an_error_of_one_line_and_nothing_is_created(data: Path, err: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        ended = run_to_end(err, "up", "--dir", str(data), "--port", str(port))

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == f"barnabas up: cannot listen on 127.0.0.1:{port}: {TAKEN}\n"
    assert not data.exists()


def test_a_metrics_port_in_use_is_an_error(data: Path, err: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        ended = run_to_end(err, "up", "--dir", str(data), "--port", "0", "--metrics-port", str(port))

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == f"barnabas up: cannot listen on 127.0.0.1:{port}: {TAKEN}\n"
    assert not data.exists()


def test_metrics_are_served_if_requested(data: Path, err: Path) -> None:
    words = ["up", "--dir", str(data), "--port", "0", "--metrics-port", "0", "--log-format", "json"]
    with started(err, *words) as up:
        up.ready()
        lines = [json.loads(line) for line in up.err.splitlines()]
        [served] = [line for line in lines if line["event"] == "metrics served"]
        root = f"http://127.0.0.1:{served['port']}"

        with urllib.request.urlopen(f"{root}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        with urllib.request.urlopen(f"{root}/ready", timeout=30) as answer:
            assert answer.status == 200
        assert up.stop().code == 0

    assert "# TYPE barnabas_" in text
    # Every line of the log is JSON.
    assert all(json.loads(line)["level"] == "INFO" for line in err.read_text().splitlines())


def test_without_a_directory_nothing_is_left_behind(err: Path) -> None:
    with started(err, "up", "--port", "0") as up:
        up.ready()
        [line] = [line for line in up.err.splitlines() if "data directory is temporary" in line]
        directory = Path(line.rpartition("dir=")[2])
        assert (directory / "meta.properties").exists()

        assert up.stop().code == 0

    assert not directory.exists()


def test_at_level_warning_only_ready_is_printed(data: Path, err: Path) -> None:
    with started(err, "up", "--dir", str(data), "--port", "0", "--log-level", "warning") as up:
        up.ready()
        assert up.stop() == (0, "", "")


def test_a_setting_without_effect_causes_no_warning(data: Path, err: Path) -> None:
    config = ["--config", "share.coordinator.threads=7", "--log-level", "warning"]
    with started(err, "up", "--dir", str(data), "--port", "0", *config) as up:
        up.ready()
        assert up.stop() == (0, "", "")


def test_the_address_advertised_for_a_wildcard_host_is_reachable(data: Path, err: Path) -> None:
    with started(err, "up", "--dir", str(data), "--port", "0", "--host", "0.0.0.0") as up:
        [address] = up.ready()

        assert not address.startswith(("0.0.0.0", "127."))
        reach(address)
        assert up.stop().code == 0


def test_a_directory_of_dynamic_voters_is_rejected_and_not_changed(data: Path, err: Path) -> None:
    assert main(["up", "--dir", str(data), "--brokers", "2"]) == 2
    with started(err, "up", "--dir", str(data), "--port", "0") as up:
        up.ready()
        up.stop()
    # The file that Kafka writes when the voters are in the log.
    state = data / "__cluster_metadata-0" / "quorum-state"
    state.write_text('{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"x","data_version":1}')
    before = {path: path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file()}

    ended = run_to_end(err, "up", "--dir", str(data), "--port", "0")

    assert (ended.code, ended.out) == (1, "")
    assert f"{data} has dynamic voters (kraft.version 1 in quorum-state)" in ended.err
    assert {path: path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file()} == before


@pytest.fixture
def config(tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Write the server.properties of a formatted node."""
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=5\n"
        "listeners=PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n"
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        f"controller.listener.names=CONTROLLER\ncontroller.quorum.voters=5@127.0.0.1:0\nlog.dirs={data}\n"
    )
    assert main(["storage", "format", "-t", "8UFBlDBzRM2WGJual5ztlg", "-c", str(path)]) == 0
    capsys.readouterr()
    return path


def test_a_node_from_a_file_serves_all_its_listeners(config: Path, err: Path, data: Path) -> None:
    with started(err, "broker", str(config), "--override", "num.partitions=3") as broker:
        first, second = broker.ready()
        reach(first)
        reach(second)

        ended = broker.stop()

    assert (ended.code, ended.out) == (0, "")
    assert "cluster.id=8UFBlDBzRM2WGJual5ztlg" in (data / "meta.properties").read_text()


def test_a_node_does_not_start_on_the_directory_of_another(config: Path, err: Path, data: Path) -> None:
    overrides = ["--override", "node.id=6", "--override", "controller.quorum.voters=6@127.0.0.1:0"]

    ended = run_to_end(err, "broker", str(config), *overrides)

    assert ended.code == 1
    assert ended.err == (
        f"barnabas broker: log directory {data} belongs to node 5, not to node 6; "
        "correct node.id or log.dirs\n"
    )


def test_a_stop_before_ready_ends_the_broker(data: Path, err: Path) -> None:
    with started(err, "up", "--dir", str(data), "--port", "0") as up:
        wait_for_line(up, "formatted")

        ended = up.stop()

    # Before the handlers are installed, the signal itself ends the process; later it causes a clean stop.
    assert ended.code in (0, -signal.SIGTERM)
    assert "Traceback" not in ended.err


def wait_for_line(running: Running, text: str) -> None:
    while text not in running.err:
        assert running.process.poll() is None, running.err


def test_a_controller_port_in_use_is_reported_before_anything_is_written(
    config: Path, err: Path, data: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        config.write_text(
            config.read_text().replace("CONTROLLER://127.0.0.1:0", f"CONTROLLER://127.0.0.1:{port}")
        )

        ended = run_to_end(err, "broker", str(config))

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == f"barnabas broker: cannot listen on 127.0.0.1:{port}: {TAKEN}\n"
    assert not (data / "__cluster_metadata-0").exists()
