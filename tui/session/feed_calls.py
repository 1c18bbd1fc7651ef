"""Requests of the screen's parts to the feed: messages that the app hands on to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from agentmesh.tui.widgets.message import message

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.tui.session.feed import Feed
    from agentmesh.tui.session.watching import Watched


class FeedCall(Message):
    """One call of the feed."""

    def make(self, feed: Feed) -> None:
        """Make the call; it returns at once."""
        raise NotImplementedError


@message
class Follow(FeedCall):
    """An agent came into view: its rows are wanted from now on."""

    agent_id: AgentId

    def make(self, feed: Feed) -> None:
        """Follow it."""
        feed.follow(self.agent_id)


@message
class Unfollow(FeedCall):
    """An agent's rows are no longer wanted."""

    agent_id: AgentId

    def make(self, feed: Feed) -> None:
        """Follow it no more."""
        feed.unfollow(self.agent_id)


@message
class Seek(FeedCall):
    """An agent is to come into view that is not on the board."""

    agent_id: AgentId

    def make(self, feed: Feed) -> None:
        """Seek it."""
        feed.seek(self.agent_id)


@message
class Older(FeedCall):
    """A person scrolls to the oldest row that was read."""

    agent_id: AgentId
    before_seq: int

    def make(self, feed: Feed) -> None:
        """Read the rows before it."""
        feed.older(self.agent_id, self.before_seq)


@message
class See(FeedCall):
    """A person has seen how an agent's last turn ended."""

    agent_id: AgentId

    def make(self, feed: Feed) -> None:
        """Note it."""
        feed.see(self.agent_id)


@message
class WatchAgents(FeedCall):
    """The board shows other agents now; without any it was closed."""

    watched: Watched

    def make(self, feed: Feed) -> None:
        """Read what the board says of them."""
        feed.watch(self.watched)
