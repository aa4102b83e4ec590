"""A table's stream as messages for one reader, who may disconnect at any time.

Holds stream positions, changes as the page shows them, and the follower that turns a subscription into messages. Knows no
HTTP: a message has an event, a position and data.
"""

from tavola.studio.changes.actors import Actors
from tavola.studio.changes.follower import (
    CHANGES_MAX,
    FollowOptions,
    StartPosition,
    StreamFollower,
    StreamGap,
    StreamMessage,
)
from tavola.studio.changes.positions import decode_position, encode_position
from tavola.studio.changes.records import ChangeFilter, ChangeRenderer, StreamChange, parse_filter

__all__ = [
    "CHANGES_MAX",
    "Actors",
    "ChangeFilter",
    "ChangeRenderer",
    "FollowOptions",
    "StartPosition",
    "StreamChange",
    "StreamFollower",
    "StreamGap",
    "StreamMessage",
    "decode_position",
    "encode_position",
    "parse_filter",
]
