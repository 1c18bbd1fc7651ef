"""Everything that agentmesh refuses or fails at, as one tree.

    AgentmeshError
    ├── Refused                 a verb said no; nothing changed (SQLSTATE class AM)
    │   ├── Fenced              this worker no longer owns the agent
    │   ├── CallClosed          the tool call already has its result
    │   ├── WrongIsolation, BadArgument, TurnInterrupted
    │   ├── UnknownAgent, AmbiguousAgent, DeadAgent, OtherSession, SelfTarget
    │   ├── UnknownSession, SessionEnded, SessionRunning, SessionChanged, SessionThere, MoveOver
    │   │   └── SessionMoved     is an UnknownSession
    │   ├── EmptyMessage, MessageTooLarge, KeyReused, MailRead, UnknownImage, NoRecipients
    │   ├── UnknownMessage
    │   ├── BadName, ReservedName, NameFixed, NameTaken
    │   ├── RootUnkillable, NotDescendant, HaltRefused
    │   ├── BadWait, WaitBusy, WaitCircle, AgentBusy
    │   ├── NoCapture, NothingToRetry, NoMark, NothingToCompact
    │   ├── RequestOver, UnknownRequest, BadAnswer, NotATask, NoSuchTask
    │   ├── NoTree, TreeMoved, MergeBusy, MergeOver, NotMergeable
    │   ├── TooManyTimers, UnknownTimer, UrgentMailFirst, TooManyProcesses, UnknownProcess
    │   ├── UnknownTodo, TooManyTodos, TodoTaken, TodoNotReady
    │   ├── SnapshotGone, UnknownWorkspace, WorkspaceInUse, NothingToRestore
    │   └── LimitReached
    │       └── MailboxFull, TooManyRecipients, DepthLimit, ChildrenLimit, AgentsLimit, LivingLimit,
    │           SpawnsLimit, BudgetSpent
    ├── UsageError              the command line, a configuration file or the environment is wrong
    │   └── ConfigError, NoModel, NotAPerson, BadImage
    ├── DatabaseError           the database cannot be reached or used
    │   ├── DatabaseUnreachable, DatabaseBusy, SchemaBehind, SchemaDiffers, ReaderMissing, EmbeddedServerError
    │   │   └── ServerReplaced   is a DatabaseUnreachable
    │   └── SchemaAhead
    │       └── SchemaReplaced   under a worker that runs
    ├── TreeError               files or objects of a workspace cannot be read or written
    │   └── NoRepository, TreeBusy, LeaseHeld, UnknownFile
    ├── WorkerFailed            a thread that a worker needs has ended, and the worker with it
    ├── ModelError              a model server failed for good (after retries)
    ├── Timeout                 a time limit that the caller set has passed
    └── Interrupted             a person stopped it

A message is one sentence that names the fault and the agent; ``hint`` says what to do next. docs/reference/errors.md
lists all.
"""

from __future__ import annotations

from typing import ClassVar


class AgentmeshError(Exception):
    """agentmesh could not do this."""

    code: ClassVar[str] = "AM000"
    """SQLSTATE if the database raises it; otherwise a code of the same shape."""
    exit_code: ClassVar[int] = 1
    """Exit code of a command that ends with it: 1 failed, 2 usage, 3 limit or timeout, 4 outdated, 130 interrupted."""

    def __init__(self, message: str | None = None, *, hint: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())
        self.hint = hint

    @property
    def message(self) -> str:
        """The sentence without the hint."""
        return str(self.args[0])

    @property
    def advice(self) -> str:
        """The hint for a person, who may well retry."""
        return self.hint.removeprefix("Do not retry. ")


class Refused(AgentmeshError):
    """The database refused this; nothing changed."""


class Fenced(Refused):
    """This worker no longer owns the agent."""

    code = "AM001"


class CallClosed(Refused):
    """The tool call already has its result."""

    code = "AM002"


class WrongIsolation(Refused):
    """The verbs run only at isolation level READ COMMITTED."""

    code = "AM003"


class BadArgument(Refused):
    """An argument is not valid."""

    code = "AM004"
    exit_code = 2


class UrgentMailFirst(Refused):
    """The call was not started, because urgent mail came before it."""

    code = "AM089"


class TurnInterrupted(Refused):
    """The turn was interrupted by a person."""

    code = "AM005"
    exit_code = 130


class UnknownAgent(Refused):
    """There is no such agent."""

    code = "AM010"


class DeadAgent(Refused):
    """The agent is dead."""

    code = "AM011"


class OtherSession(Refused):
    """The agent belongs to another session."""

    code = "AM012"


class SelfTarget(Refused):
    """An agent cannot do this to itself."""

    code = "AM013"


class AmbiguousAgent(Refused):
    """More than one agent matches."""

    code = "AM014"


class UnknownSession(Refused):
    """There is no such session."""

    code = "AM015"


class SessionEnded(Refused):
    """The session has ended."""

    code = "AM016"


class SessionRunning(Refused):
    """Agents of the session still live."""

    code = "AM017"


class SessionMoved(UnknownSession):
    """The session lives in another database now."""

    code = "AM044"


class MoveOver(Refused):
    """The move of the session was called off."""

    code = "AM046"


class SessionChanged(Refused):
    """The session has changed while it was copied."""

    code = "AM047"


class SessionThere(Refused):
    """The session is in the database already."""

    code = "AM048"


class EmptyMessage(Refused):
    """The message is empty."""

    code = "AM020"


class MessageTooLarge(Refused):
    """The message is larger than 256 KiB."""

    code = "AM021"


class UnknownMessage(Refused):
    """The message that this one is to answer is not in the session, or is not its sender's."""

    code = "AM045"


class KeyReused(Refused):
    """The key was already used for another message."""

    code = "AM023"


class MailRead(Refused):
    """The message has been read already."""

    code = "AM024"


class BadName(Refused):
    """The name is not valid."""

    code = "AM030"


class ReservedName(Refused):
    """The name is reserved."""

    code = "AM031"


class NameFixed(Refused):
    """The agent keeps its name."""

    code = "AM036"


class NameTaken(Refused):
    """Another agent of the session has the name."""

    code = "AM037"


class RootUnkillable(Refused):
    """The root of a session cannot be killed."""

    code = "AM040"


class NotDescendant(Refused):
    """Only descendants can be killed or interrupted."""

    code = "AM041"


class HaltRefused(Refused):
    """The agent may not end the work of the agents above it."""

    code = "AM042"


class BadWait(Refused):
    """The wait is not valid."""

    code = "AM050"


class WaitBusy(Refused):
    """The agent is already inside a wait."""

    code = "AM051"


class WaitCircle(Refused):
    """This wait would close a circle."""

    code = "AM052"


class AgentBusy(Refused):
    """The agent is busy."""

    code = "AM053"


class NoCapture(Refused):
    """The agent is in no capture."""

    code = "AM060"


class NothingToRetry(Refused):
    """The agent's last turn did not fail."""

    code = "AM061"


class NoMark(Refused):
    """The agent has no such mark."""

    code = "AM062"


class NothingToCompact(Refused):
    """There is nothing to compact."""

    code = "AM063"


class RequestOver(Refused):
    """The request has been answered, or its turn has ended."""

    code = "AM070"


class UnknownRequest(Refused):
    """There is no such request."""

    code = "AM071"


class BadAnswer(Refused):
    """The answer does not fit the request."""

    code = "AM072"


class NotATask(Refused):
    """The agent is no sub-agent of a task of the caller."""

    code = "AM073"


class NoSuchTask(Refused):
    """No task of the agent runs that could go on in the background."""

    code = "AM074"


class NoTree(Refused):
    """An agent can have no tree of its own here."""

    code = "AM080"


class TreeMoved(Refused):
    """The files have a newer snapshot than the caller knows."""

    code = "AM081"


class MergeBusy(Refused):
    """Another merge into the same files is being written."""

    code = "AM082"


class MergeOver(Refused):
    """The merge has ended otherwise."""

    code = "AM083"


class NotMergeable(Refused):
    """The files of these two cannot be merged."""

    code = "AM084"


class SnapshotGone(Refused):
    """The files of that moment are not kept any more."""

    code = "AM085"


class UnknownWorkspace(Refused):
    """There is no such workspace."""

    code = "AM086"


class WorkspaceInUse(Refused):
    """The workspace is still in use."""

    code = "AM087"


class NothingToRestore(Refused):
    """There is no rewind to lift."""

    code = "AM088"


class UnknownTimer(Refused):
    """There is no such timer."""

    code = "AM098"


class NoRecipients(Refused):
    """A message to several has no recipient."""

    code = "AM026"


class UnknownTodo(Refused):
    """There is no such todo in the session."""

    code = "AM090"


class TodoTaken(Refused):
    """Another agent has the todo, or it is done."""

    code = "AM092"


class TodoNotReady(Refused):
    """Something else must be done before the todo."""

    code = "AM093"


class UnknownProcess(Refused):
    """There is no such process in the background."""

    code = "AM151"


class UnknownImage(Refused):
    """An image that a message refers to is not stored in its session."""

    code = "AM025"


class LimitReached(Refused):
    """A limit is reached."""

    code = "AM029"
    exit_code = 3


class MailboxFull(LimitReached):
    """The mailbox is full."""

    code = "AM022"


class TooManyRecipients(LimitReached):
    """A message to several has too many recipients."""

    code = "AM027"


class TooManyTimers(LimitReached):
    """The session may not have more timers."""

    code = "AM097"


class TooManyTodos(LimitReached):
    """The session may not have more todos that are not done."""

    code = "AM091"


class TooManyProcesses(LimitReached):
    """No more processes may run in the background."""

    code = "AM150"


class DepthLimit(LimitReached):
    """The tree may not grow deeper."""

    code = "AM032"


class ChildrenLimit(LimitReached):
    """The agent may not have more living children."""

    code = "AM033"


class AgentsLimit(LimitReached):
    """The session may not have more agents that work or wait."""

    code = "AM034"


class LivingLimit(LimitReached):
    """The session may not have more living agents, working or idle."""

    code = "AM039"


class SpawnsLimit(LimitReached):
    """The session may not make more agents, whether they live or not."""

    code = "AM038"


class BudgetSpent(LimitReached):
    """The budget is spent."""

    code = "AM035"


class UsageError(AgentmeshError):
    """The call is not valid."""

    code = "AM100"
    exit_code = 2


class ConfigError(UsageError):
    """The configuration is not valid."""

    code = "AM101"


class NoModel(UsageError):
    """No model is configured, or none can be reached by the given name."""

    code = "AM102"


class NotAPerson(UsageError):
    """Only a person may do this, and an agent started this program."""

    code = "AM103"


class BadImage(UsageError):
    """The file is no image that can be shown to a model."""

    code = "AM104"


class DatabaseError(AgentmeshError):
    """The database cannot be used."""

    code = "AM110"


class DatabaseUnreachable(DatabaseError):
    """The database cannot be reached."""

    code = "AM111"


class ServerReplaced(DatabaseUnreachable):
    """The server that answers is not, or no longer, the database that this program has used."""

    code = "AM043"


class DatabaseBusy(DatabaseError):
    """The database could not take this now; nothing was changed."""

    code = "AM119"


class SchemaBehind(DatabaseError):
    """The database's schema is older than this program."""

    code = "AM112"


class SchemaAhead(DatabaseError):
    """The database's schema is newer than this program."""

    code = "AM113"


class SchemaReplaced(SchemaAhead):
    """The database's schema was upgraded under this worker."""

    code = "AM116"
    exit_code = 4


class SchemaDiffers(DatabaseError):
    """The database's schema is not what its revision stands for."""

    code = "AM117"


class ReaderMissing(DatabaseError):
    """The database has no role agentmesh_reader that this user can log in as."""

    code = "AM114"


class EmbeddedServerError(DatabaseError):
    """The embedded PostgreSQL server does not start."""

    code = "AM115"


class TreeError(AgentmeshError):
    """The workspace's files or objects cannot be read or written."""

    code = "AM140"


class NoRepository(TreeError):
    """The directory is in no Git repository that agentmesh can use."""

    code = "AM141"


class TreeBusy(TreeError):
    """Another process works with the workspace's files."""

    code = "AM142"


class LeaseHeld(TreeError):
    """Another agent writes in that directory until its turn ends."""

    code = "AM143"


class UnknownFile(TreeError):
    """No such file was changed."""

    code = "AM144"


class WorkerFailed(AgentmeshError):
    """A thread of the worker has ended, and the worker with it."""

    code = "AM118"


class ModelError(AgentmeshError):
    """The model server failed."""

    code = "AM120"


class Timeout(AgentmeshError):
    """The time limit passed."""

    code = "AM130"
    exit_code = 3


class Interrupted(AgentmeshError):
    """Interrupted."""

    code = "AM131"
    exit_code = 130
