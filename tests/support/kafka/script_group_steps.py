"""The command lines for groups, which come after all others: kafka_script_steps.py says how they are written.

The tool for groups says what went wrong and ends well all the same. Those of ACTIVE are run while the group
"active" has a member, once for each protocol that a group may be of.
"""

from collections.abc import Mapping

GROUP_FILES: Mapping[str, str] = {
    "plan.csv": "events,0,2\n",
    "plan-of-two.csv": '"readers","events",0,1\n"others","events",0,4\n',
    "wrong-plan.csv": "events;0;2\n",
}

GROUP_TOPICS = """
create for groups         | --create --topic events --partitions 1 --replication-factor 1
create another for groups | --create --topic pairs --partitions 2 --replication-factor 1
"""
NO_GROUPS_YET = """
list when there are none        | --list
list states when there is none  | --list --state
describe all when there is none | --describe --all-groups
"""
GROUP_CONSUMER = """
in a group              | --topic events --group readers --from-beginning --max-messages 3
further on in the group | --topic events --group readers --max-messages 1
in another group        | --topic events --group others --from-beginning --max-messages 2
by the new protocol     | --topic events --group modern --from-beginning --max-messages 2 {new}
further on by it        | --topic events --group modern --max-messages 2 {new}
of two topics           | --include events|pairs --group both --from-beginning --max-messages 5
""".replace("{new}", "--command-property group.protocol=consumer")
CONSUMER_GROUPS = """
list                               | --list
list with states                   | --list --state
list in a state                    | --list --state Empty
list those that are stable         | --list --state stable
list with types                    | --list --type
list of a type                     | --list --type consumer
list of a type in a state          | --list --type classic --state empty
describe                           | --describe --group readers
describe offsets                   | --describe --group readers --offsets
describe offsets verbosely         | --describe --group readers --offsets --verbose
describe members of an empty group | --describe --group readers --members
describe state                     | --describe --group readers --state
describe state verbosely           | --describe --group modern --state --verbose
describe two                       | --describe --group readers --group modern
describe the state of all          | --describe --all-groups --state
describe what is not there         | --describe --group nobody
describe the state of what is not  | --describe --group nobody --state
to earliest, dry                   | {reset} --topic events --to-earliest --dry-run
to earliest, by default dry        | {reset} --topic events --to-earliest
to latest                          | {reset} --topic events --to-latest --execute
to an offset                       | {reset} --topic events --to-offset 1 --execute
to an offset that is too large     | {reset} --topic events --to-offset 99 --dry-run
by a shift                         | {reset} --topic events --shift-by 2 --execute
by a shift back                    | {reset} --topic events --shift-by -9 --dry-run
to a time                          | {reset} --topic events --to-datetime 2020-01-01T00:00:00.000
to a time to come                  | {reset} --topic events --to-datetime 2120-01-01T00:00:00.000
by a duration                      | {reset} --topic events --by-duration PT1H --dry-run
to where it is                     | {reset} --all-topics --to-current --dry-run
of a partition                     | --reset-offsets --group both --topic events:0 --to-earliest --execute
of a partition that is not there   | {reset} --topic events:7 --to-earliest --dry-run
of a topic that is not there       | {reset} --topic nowhere --to-earliest --dry-run
of all groups                      | --reset-offsets --all-groups --topic events --to-earliest --dry-run
of a group that is not there       | --reset-offsets --group fresh --topic events --to-offset 2 --execute
export                             | {reset} --topic events --to-offset 1 --dry-run --export
export of two                      | {reset} --group others --topic events --to-earliest --export
from a file                        | {reset} --from-file {files}/plan.csv --execute
from a file for two                | {reset} --group others --from-file {files}/plan-of-two.csv --execute
from a wrong file                  | {reset} --from-file {files}/wrong-plan.csv --dry-run
describe what was reset            | --describe --group readers
of the new protocol                | --reset-offsets --group modern --topic events --to-offset 1 --execute
describe what was reset there      | --describe --group modern
delete offsets                     | --delete-offsets --group both --topic events
delete offsets of a partition      | --delete-offsets --group both --topic pairs:1
delete offsets of no partition     | --delete-offsets --group both --topic pairs:9
delete offsets of no topic         | --delete-offsets --group both --topic nowhere
delete offsets of no group         | --delete-offsets --group nobody --topic events
describe what is left              | --describe --group both
""".replace("{reset}", "--reset-offsets --group readers")
ACTIVE = """
describe a {kind} group          | --describe --group active
{kind} members                   | --describe --group active --members
{kind} members, verbosely        | --describe --group active --members --verbose
{kind} offsets, verbosely        | --describe --group active --offsets --verbose
{kind} state                     | --describe --group active --state
{kind} state, verbosely          | --describe --group active --state --verbose
list a stable {kind} group       | --list --state stable
reset a {kind} group             | --reset-offsets --group active --topic pairs --to-latest --execute
delete a {kind} group            | --delete --group active
delete offsets of a {kind} group | --delete-offsets --group active --topic pairs
"""
GROUPS_DELETED = """
delete                   | --delete --group readers
delete two               | --delete --group others --group modern
delete what is not there | --delete --group nobody
delete all               | --delete --all-groups
list what is left        | --list
"""
ALL_KINDS = """
list               | --list
list of consumers  | --list --consumer
list of a type     | --list --group-type classic
list of a protocol | --list --protocol consumer
"""
