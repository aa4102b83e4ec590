"""Server: the engine over HTTP, as AWS speaks it.

Holds the connections with their deadlines, the headers and checksums of an answer, the proof of a signature,
the access log, and the group in which writes of one moment commit together. Knows the engine by its port
(`ServedEngine`), the operations by name and the policies by their guard; knows no entity and no table. Why no web
framework: between a socket and an engine that answers in microseconds it would be most of the cost.
"""
