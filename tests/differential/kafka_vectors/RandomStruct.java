import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.internal.MemoryRecords;

/**
 * Fills any Kafka schema with values that tend to break codecs: the ends of every integer type, strings beyond
 * ASCII, empty and null, arrays of none to three, tagged fields there and not there.
 *
 * The same seed gives the same struct on every machine.
 */
final class RandomStruct {
    enum Filling {
        /** Nothing is null, zero or empty and every tagged field is there: each field is seen at least once. */
        FULL,
        /** Whatever can be null is null and no tagged field is there: each null is seen at least once. */
        SPARSE,
        /** Anything, the odd values more often than chance would have them. */
        RANDOM,
    }

    private static final String[] STRINGS = {
        "", "a", "topic-1", "client.id", "ключ", "日本語", "naïve", "🚀", "\u0000\n\"\\", "long-".repeat(27),
    };
    private static final Uuid[] UUIDS = {Uuid.ZERO_UUID, Uuid.ONE_UUID, new Uuid(-1L, -1L), new Uuid(1L << 63, 42L)};
    private static final double[] DOUBLES = {0.0, 1.0, -1.5, Double.MAX_VALUE, Double.MIN_VALUE, 1e21, 0.1};

    /** A length that needs two bytes as an unsigned varint. */
    private static final int LONG_ARRAY = 130;

    private final SplittableRandom random;
    private final Filling filling;
    private final boolean full;

    RandomStruct(long seed, Filling filling) {
        this.random = new SplittableRandom(seed);
        this.filling = filling;
        this.full = filling == Filling.FULL;
    }

    Struct of(Schema schema) {
        return of(schema, 0);
    }

    private Struct of(Schema schema, int depth) {
        Struct struct = new Struct(schema);
        for (BoundField field : schema.fields()) {
            struct.set(field, value(field.def.type, depth));
        }
        return struct;
    }

    private Object value(Type type, int depth) {
        if (type instanceof TaggedFields tagged) {
            return tags(tagged, depth);
        }
        if (type.isNullable() && leaveOut(4)) {
            return null;
        }
        if (type.isArray()) {
            return array(type.arrayElementType().orElseThrow(), depth);
        }
        if (type instanceof Schema schema) {
            return of(schema, depth + 1);
        }
        return scalar(type);
    }

    /** Whether to leave something out: never when full, always when sparse, else once in `times`. */
    private boolean leaveOut(int times) {
        return switch (filling) {
            case FULL -> false;
            case SPARSE -> true;
            case RANDOM -> random.nextInt(times) == 0;
        };
    }

    private Map<Integer, Object> tags(TaggedFields tagged, int depth) {
        Map<Integer, Object> values = new TreeMap<>();
        for (Map.Entry<Integer, Field> entry : new TreeMap<>(tagged.fields()).entrySet()) {
            Type type = entry.getValue().type;
            if (!leaveOut(2)) {
                // A null struct with a tag is not for us: Kafka's Schema writes -1 for it, Kafka's messages write 0.
                values.put(entry.getKey(), type instanceof Schema schema ? of(schema, depth + 1) : value(type, depth));
            }
        }
        return values;
    }

    private Object[] array(Type element, int depth) {
        boolean nested = element instanceof Schema;
        int most = depth < 2 ? 3 : 2;
        int size = filling == Filling.RANDOM ? random.nextInt(most + 1) : most - 1;
        if (!nested && filling == Filling.RANDOM && random.nextInt(40) == 0) {
            size = LONG_ARRAY;
        }
        Object[] values = new Object[size];
        for (int i = 0; i < size; i++) {
            values[i] = value(element, depth + 1);
        }
        return values;
    }

    private Object scalar(Type type) {
        // By name: a compact, nullable or plain type differs in how it is written, not in what it holds.
        String name = type.toString().replace("COMPACT_", "").replace("NULLABLE_", "");
        return switch (name) {
            case "BOOLEAN" -> full || random.nextBoolean();
            case "INT8" -> (byte) integer(8);
            case "INT16" -> (short) integer(16);
            case "UINT16" -> (int) integer(16) & 0xFFFF;
            case "INT32" -> (int) integer(32);
            case "UINT32" -> integer(32) & 0xFFFFFFFFL;
            case "INT64" -> integer(64);
            case "FLOAT64" -> DOUBLES[full ? 2 : random.nextInt(DOUBLES.length)];
            case "UUID" -> uuid();
            case "STRING" -> STRINGS[full ? 1 + random.nextInt(5) : random.nextInt(STRINGS.length)];
            case "BYTES" -> ByteBuffer.wrap(bytes());
            case "RECORDS" -> MemoryRecords.readableRecords(ByteBuffer.wrap(bytes()));
            default -> throw new IllegalStateException("a type this program has not met: " + type);
        };
    }

    /** One of the numbers at which an integer of that many bits changes its nature, or any number. */
    private long integer(int bits) {
        long most = bits == 64 ? Long.MAX_VALUE : (1L << (bits - 1)) - 1;
        if (full) {
            return 2 + random.nextInt(100);
        }
        return switch (random.nextInt(8)) {
            case 0 -> 0;
            case 1 -> 1;
            case 2 -> -1;
            case 3 -> most;
            case 4 -> -most - 1;
            case 5 -> random.nextInt(128);
            default -> random.nextLong() >> (64 - bits);
        };
    }

    private Uuid uuid() {
        if (full || random.nextInt(3) == 0) {
            return new Uuid(random.nextLong(), random.nextLong());
        }
        return UUIDS[random.nextInt(UUIDS.length)];
    }

    private byte[] bytes() {
        if (!full && random.nextInt(4) == 0) {
            return random.nextBoolean() ? new byte[0] : "0123456789".repeat(20).getBytes(StandardCharsets.US_ASCII);
        }
        byte[] bytes = new byte[1 + random.nextInt(12)];
        random.nextBytes(bytes);
        return bytes;
    }
}
