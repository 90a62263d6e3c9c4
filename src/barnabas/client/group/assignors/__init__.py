"""How the leader of a classic group shares out partitions: by Kafka's names, with Kafka's meaning. Pure.

Members of one group may run different clients, and whoever leads decides for all. What must agree between
clients is the name, the bytes and the promise (balance, stickiness); sticky ones may differ in who gets what.
Racks are not looked at.
"""
