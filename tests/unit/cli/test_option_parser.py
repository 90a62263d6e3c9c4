"""Command lines are parsed as by joptsimple, and errors have the messages of Kafka's tools."""

import pytest

from barnabas.cli.option_parser import Options, Parser, integer, long


def make() -> Parser:
    parser = Parser(prog="barnabas tool", description="A tool.")
    parser.option("topic", "The topic.", value="topic")
    parser.option("config", "A setting.", value="name=value", many=True)
    parser.option("time", "A time.", convert=long)
    parser.option("partitions", "How many.", convert=integer, default=1)
    parser.option("codec", "How.", value_optional=True)
    parser.flag("list", "All.")
    parser.flag("if-exists", "Only then.")
    return parser


def read(*words: str) -> Options:
    return make().parse_args(words)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        read(*words)
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (1, "")
    return err


@pytest.mark.parametrize("words", [("--topic", "a"), ("--topic=a",), ("-topic", "a"), ("--topic=", "a")])
def test_a_value_follows_its_option_or_an_equals_sign(words: tuple[str, ...]) -> None:
    assert read(*words).topic == "a"


def test_a_value_is_taken_whatever_it_looks_like() -> None:
    options = read("--time", "-1", "--topic", "--list")

    assert (options.time, options.topic, options.list) == (-1, "--list", False)


def test_a_repeatable_option_is_a_list_in_command_line_order() -> None:
    assert read("--config", "a=1", "--list", "--config", "b=2").config == ["a=1", "b=2"]
    assert read("--list").config == []


def test_two_command_lines_do_not_share_a_list() -> None:
    parser = make()

    parser.parse_args(["--list"]).config.append("a=1")

    assert parser.parse_args(["--list"]).config == []


def test_given_options_are_distinguished_from_defaults_and_keep_their_order() -> None:
    options = read("--if-exists", "--partitions", "1", "--list")

    assert options.order == ["if-exists", "partitions", "list"]
    assert options.given("partitions")
    assert not options.given("time")
    assert read("--list").partitions == 1


@pytest.mark.parametrize(("words", "value"), [(("--codec", "--list"), ""), (("--codec", "lz4"), "lz4")])
def test_an_optional_value_is_taken_unless_it_looks_like_an_option(
    words: tuple[str, ...], value: str
) -> None:
    assert read(*words).codec == value


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--zork",), "zork is not a recognized option"),
        (("--lis",), "lis is not a recognized option"),
        (("--topic",), "Option topic requires an argument"),
        (
            ("--topic", "a", "--topic", "b"),
            "Found multiple arguments for option topic, but you asked for only one",
        ),
        (("--partitions", "abc"), "Cannot parse argument 'abc' of option partitions"),
        (("--partitions", str(2**31)), f"Cannot parse argument '{2**31}' of option partitions"),
        (("--time", "9" * 5000), f"Cannot parse argument '{'9' * 5000}' of option time"),
        (("--if-exists=false",), "Option if-exists takes no argument, but was given 'false'"),
    ],
)
def test_an_invalid_option_is_one_line_and_exit_code_one(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], line: str
) -> None:
    assert refused(capsys, *words) == f"{line}\n"


def test_an_unambiguous_prefix_of_a_name_is_accepted_if_the_tool_allows_it() -> None:
    parser = make()
    parser.abbreviations = True

    assert parser.parse_args(["--top", "a"]).topic == "a"
    with pytest.raises(SystemExit):
        parser.parse_args(["--t", "a"])


def test_a_required_option_that_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    parser = make()
    parser.option("server", "Where.", required=True)

    with pytest.raises(SystemExit):
        parser.parse_args(["--list"])

    assert capsys.readouterr().err == "Missing required option(s) [server]\n"


def test_a_stray_word_causes_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert read("--list", "what", "--", "--ever").list

    assert (
        capsys.readouterr().err == "barnabas tool: arguments ignored, they belong to no option: what --ever\n"
    )


def test_require_and_refuse_with_print_an_error_and_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    options = read("--list", "--if-exists")

    for check in (
        lambda: options.parser.require(options, "list", "topic"),
        lambda: options.parser.refuse_with(options, "if-exists", ["topic", "list"]),
    ):
        with pytest.raises(SystemExit) as ended:
            check()
        assert ended.value.code == 1

    err = capsys.readouterr().err
    assert 'Missing required argument "[topic]"\nOption ' in err
    assert 'Option "[if-exists]" can\'t be used with option "[list]"\nOption ' in err


def test_help_names_every_option_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read("--help")

    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert out.startswith("A tool.\n\nOption ")
    for name in ("--topic <topic>", "--codec [text]", "--list ", "--config <name=value>", "--version "):
        assert name in out


def test_an_empty_command_line_is_an_error_and_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--topic <topic>" in refused(capsys)


def test_version_prints_the_matching_kafka_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read("--version")

    assert (ended.value.code, capsys.readouterr().out) == (0, "4.3.0\n")


@pytest.mark.parametrize("text", ["", "-", "1_0", "0x1", " 1", "1.0", "\N{ARABIC-INDIC DIGIT ONE}"])
def test_only_java_numbers_are_accepted(text: str) -> None:
    with pytest.raises(ValueError, match="is not a whole number"):
        long(text)


def test_numbers_have_the_ranges_of_java() -> None:
    assert (integer("-2147483648"), integer("+7"), integer("007")) == (-(2**31), 7, 7)
    assert long("9223372036854775807") == 2**63 - 1
    for wrong in ("2147483648", "-2147483649"):
        with pytest.raises(ValueError, match="is out of range"):
            integer(wrong)
