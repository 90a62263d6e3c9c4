"""The parts of `barnabas up` and `barnabas broker`: settings of the node, its process and its signals."""
