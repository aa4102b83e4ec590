"""Following: a table's changes as they come, for one reader who may lose the connection at any moment.

Holds positions, which say how far a reader is in every shard; the change as it is told; and the follower that turns a
subscription into messages. Knows no HTTP: a message has an event, a position and data.
"""

from tavola.studio.following.actors import Actors
from tavola.studio.following.changes import ChangeTeller, StreamChange, Wanted, wanted_of
from tavola.studio.following.follower import CHANGES_MAX, Follower, Gap, Manners, Message, Start
from tavola.studio.following.positions import decode_position, encode_position

__all__ = [
    "CHANGES_MAX",
    "Actors",
    "ChangeTeller",
    "Follower",
    "Gap",
    "Manners",
    "Message",
    "Start",
    "StreamChange",
    "Wanted",
    "decode_position",
    "encode_position",
    "wanted_of",
]
