import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * A group whose members and topics change at random, and what an assignor says at each step.
 *
 * Maps and sets that are handed to the assignor have an order that the case tells of, and where Kafka makes a set of
 * its own (the topics of a homogeneous group) the ids are such that it has their order. So there is one right answer.
 */
final class RandomGroup {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final int MEMBERS_MAX = 30;
    private static final int TOPICS_MAX = 8;
    private static final int PARTITIONS_MAX = 20;
    // Of ids: sorted by UTF-16 units they are in another order than by code points.
    private static final List<String> PREFIXES = List.of("", "", "", "\u00e4", "\uff21", "\ud83c\udff0");

    private final Random random;
    private final String assignorName;
    private final ConsumerGroupPartitionAssignor assignor;
    private final boolean homogeneous;
    private final List<Uuid> topics = new ArrayList<>();
    private final Map<Uuid, Integer> partitions = new HashMap<>();
    private final List<Member> members = new ArrayList<>();
    private int named;

    private static final class Member {
        String id;
        String instance;
        List<Uuid> topics;
        Map<Uuid, Set<Integer>> owned = new LinkedHashMap<>();
    }

    RandomGroup(long seed, String assignorName, boolean homogeneous) {
        random = new Random(seed * 4 + (assignorName.equals("range") ? 2 : 0) + (homogeneous ? 1 : 0));
        this.assignorName = assignorName;
        this.assignor = assignorName.equals("range") ? new RangeAssignor() : new UniformAssignor();
        this.homogeneous = homogeneous;
        int topicCount = 1 + random.nextInt(TOPICS_MAX);
        for (int number = 1; number <= topicCount; number++) {
            Uuid id = homogeneous ? new Uuid(0, number) : new Uuid(random.nextLong(), random.nextLong());
            topics.add(id);
            partitions.put(id, 1 + random.nextInt(PARTITIONS_MAX));
        }
        int memberCount = 1 + random.nextInt(MEMBERS_MAX);
        for (int number = 0; number < memberCount; number++) {
            join();
        }
        if (random.nextBoolean()) {
            scatter();
        }
    }

    /**
     * Nothing random: each member shares a topic with the one before and another with the one after, and the last of
     * them have everything. Evening that out would take more rounds than the assignor makes.
     */
    static RandomGroup chain(int links, int partitionsOfEach) {
        RandomGroup group = new RandomGroup(0, "uniform", false);
        group.topics.clear();
        group.members.clear();
        for (int number = 0; number <= links; number++) {
            Member member = new Member();
            member.id = "m" + number;
            member.topics = new ArrayList<>();
            if (number > 0) {
                Uuid shared = group.topics.get(number - 1);
                member.topics.add(shared);
                for (int partition = 0; partition < partitionsOfEach; partition++) {
                    member.owned.computeIfAbsent(shared, __ -> new TreeSet<>()).add(partition);
                }
            }
            if (number < links) {
                // Each id is lower than the one before, so that the topics are gone through from the far end.
                Uuid next = new Uuid(links - number, 1);
                group.topics.add(next);
                group.partitions.put(next, partitionsOfEach);
                member.topics.add(next);
            }
            group.members.add(member);
        }
        return group;
    }

    /** The state as it is and what the assignor makes of it; members own that from now on. */
    ObjectNode assign() {
        ObjectNode node = JSON.objectNode().put("kind", "assign").put("assignor", assignorName);
        node.put("homogeneous", homogeneous);
        ArrayNode topicNodes = node.putArray("topics");
        topics.forEach(topic -> topicNodes.addArray().add(topic.toString()).add(partitions.get(topic)));
        ArrayNode memberNodes = node.putArray("members");
        members.forEach(member -> memberNodes.add(described(member)));
        GroupAssignment result = assignor.assign(spec(), describer());
        ArrayNode assigned = node.putArray("assigned");
        for (Member member : members) {
            Map<Uuid, Set<Integer>> of = result.members().containsKey(member.id)
                ? result.members().get(member.id).partitions() : Map.of();
            own(member, of);
            assigned.add(described(member.owned));
        }
        return node;
    }

    /** One thing that happens to groups. */
    void change() {
        Member any = members.get(random.nextInt(members.size()));
        switch (random.nextInt(7)) {
            case 0 -> join();
            case 1 -> leave(1);
            case 2 -> leave(1 + members.size() / 3);
            case 3 -> any.id = newId();
            case 4 -> subscribe(any);
            case 5 -> partitions.merge(topics.get(random.nextInt(topics.size())), 1 + random.nextInt(5), Integer::sum);
            default -> Collections.shuffle(members, random);
        }
    }

    private void join() {
        Member member = new Member();
        member.id = newId();
        member.instance = random.nextInt(4) == 0 ? prefix() + "static-" + named : null;
        members.add(random.nextInt(members.size() + 1), member);
        member.topics = homogeneous && members.size() > 1
            ? members.get(members.get(0) == member ? 1 : 0).topics : someTopics();
    }

    private void leave(int count) {
        for (int number = 0; number < count && members.size() > 1; number++) {
            members.remove(random.nextInt(members.size()));
        }
    }

    private void subscribe(Member any) {
        List<Uuid> chosen = someTopics();
        for (Member member : homogeneous ? members : List.of(any)) {
            member.topics = chosen;
        }
    }

    private String newId() {
        named++;
        return prefix() + Integer.toHexString(random.nextInt(1 << 16)) + "-" + named;
    }

    private String prefix() {
        return PREFIXES.get(random.nextInt(PREFIXES.size()));
    }

    /** Seldom none; often all. */
    private List<Uuid> someTopics() {
        if (random.nextInt(3) == 0) {
            return topics;
        }
        List<Uuid> shuffled = new ArrayList<>(topics);
        Collections.shuffle(shuffled, random);
        return shuffled.subList(0, random.nextInt(30) == 0 ? 0 : 1 + random.nextInt(topics.size()));
    }

    /** As if something else had assigned: most partitions have some subscriber for an owner. */
    private void scatter() {
        for (Uuid topic : topics) {
            List<Member> subscribers = members.stream().filter(one -> one.topics.contains(topic)).toList();
            int favoured = subscribers.isEmpty() ? 0 : 1 + random.nextInt(subscribers.size());
            for (int number = 0; number < partitions.get(topic) && favoured > 0; number++) {
                if (random.nextInt(6) > 0) {
                    Member owner = subscribers.get(random.nextInt(favoured));
                    owner.owned.computeIfAbsent(topic, __ -> new TreeSet<>()).add(number);
                }
            }
        }
    }

    private void own(Member member, Map<Uuid, Set<Integer>> assigned) {
        List<Uuid> order = new ArrayList<>(topics);
        order.retainAll(assigned.keySet());
        Collections.shuffle(order, random);
        member.owned = new LinkedHashMap<>();
        order.forEach(topic -> member.owned.put(topic, new TreeSet<>(assigned.get(topic))));
    }

    private GroupSpecImpl spec() {
        Map<String, MemberSubscriptionAndAssignmentImpl> specs = new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (Member member : members) {
            specs.put(member.id, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(),
                Optional.ofNullable(member.instance),
                new HashSet<>(member.topics),
                new Assignment(member.owned)));
            member.owned.forEach((topic, numbers) -> numbers.forEach(
                number -> owners.computeIfAbsent(topic, __ -> new HashMap<>()).put(number, member.id)));
        }
        SubscriptionType type = homogeneous ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        return new GroupSpecImpl(specs, type, owners);
    }

    private SubscribedTopicDescriber describer() {
        return new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topic) {
                return partitions.getOrDefault(topic, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topic, int partition) {
                throw new UnsupportedOperationException("an assignor asks for racks");
            }
        };
    }

    private ArrayNode described(Member member) {
        ArrayNode node = JSON.arrayNode().add(member.id).add(member.instance);
        ArrayNode subscribed = node.addArray();
        topics.stream().filter(member.topics::contains).forEach(topic -> subscribed.add(topics.indexOf(topic)));
        return node.add(described(member.owned));
    }

    private ArrayNode described(Map<Uuid, Set<Integer>> assignment) {
        ArrayNode node = JSON.arrayNode();
        assignment.forEach((topic, numbers) -> {
            ArrayNode numberNodes = node.addArray().add(topics.indexOf(topic)).addArray();
            numbers.forEach(numberNodes::add);
        });
        return node;
    }
}
