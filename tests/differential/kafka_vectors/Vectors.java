import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.OutputStream;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.Struct;
import org.tukaani.xz.LZMA2Options;
import org.tukaani.xz.XZOutputStream;

/**
 * Writes golden vectors: every message of this Kafka in every version, as Kafka's own generated classes encode it.
 *
 * A random struct is written with the message's Schema, read by the message class and written back by it, so the
 * bytes are those that Kafka would send. The JSON beside them is Kafka's JsonConverter of the same object.
 */
public final class Vectors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int RANDOM_INSTANCES = 5;

    public static void main(String[] args) throws Exception {
        Path directory = Path.of(args[0]);
        Files.createDirectories(directory);
        Map<String, MessageClass> messages = MessageClass.all();
        // All of them before the first is written: a failure leaves the old file alone.
        StringBuilder lines = new StringBuilder();
        for (MessageClass message : messages.values()) {
            linesOf(message).forEach(line -> lines.append(line).append('\n'));
        }
        try (OutputStream file = Files.newOutputStream(directory.resolve("vectors.jsonl.xz"));
                XZOutputStream out = new XZOutputStream(file, new LZMA2Options(9))) {
            out.write(lines.toString().getBytes(StandardCharsets.UTF_8));
        }
        write(directory.resolve("api_versions.json"), Facts.apiVersions(messages));
        write(directory.resolve("error_codes.json"), Facts.errorCodes());
    }

    private static void write(Path file, JsonNode json) throws Exception {
        Files.writeString(file, JSON.writerWithDefaultPrettyPrinter().writeValueAsString(json) + "\n");
    }

    /** The vectors of one message, without repetition: a message without fields has one per version. */
    private static Set<String> linesOf(MessageClass message) throws Exception {
        Set<String> lines = new LinkedHashSet<>();
        for (short version = message.lowest(); version <= message.highest(); version++) {
            lines.add(vector(message, version, message.create()));
            addNullTags(lines, message, version);
            addFilled(lines, message, version, 0, RandomStruct.Filling.FULL);
            addFilled(lines, message, version, 1, RandomStruct.Filling.SPARSE);
            for (int i = 0; i < RANDOM_INSTANCES; i++) {
                addFilled(lines, message, version, 2 + i, RandomStruct.Filling.RANDOM);
            }
        }
        return lines;
    }

    /** The one thing that RandomStruct cannot do: a struct that has a tag and is null. */
    private static void addNullTags(Set<String> lines, MessageClass message, short version) throws Exception {
        for (String name : message.nullableTaggedStructs(version)) {
            Message object = message.create();
            Field field = message.type().getDeclaredField(name);
            field.setAccessible(true);
            field.set(object, null);
            lines.add(vector(message, version, object));
        }
    }

    private static void addFilled(
            Set<String> lines, MessageClass message, short version, int number, RandomStruct.Filling filling)
            throws Exception {
        long seed = 31L * (31L * message.name().hashCode() + version) + number;
        Struct struct = new RandomStruct(seed, filling).of(message.schema(version));
        lines.add(vector(message, version, read(message, version, struct)));
    }

    private static Message read(MessageClass message, short version, Struct struct) throws Exception {
        ByteBuffer buffer = ByteBuffer.allocate(struct.sizeOf());
        struct.writeTo(buffer);
        buffer.flip();
        Message object = message.create();
        object.read(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException(message.name() + " v" + version + " does not read all that its schema wrote");
        }
        return object;
    }

    private static String vector(MessageClass message, short version, Message object) throws Exception {
        byte[] encoded = encode(object, version);
        JsonNode json = message.toJson(object, version);
        byte[] again = encode(message.fromJson(json, version), version);
        if (!Arrays.equals(encoded, again)) {
            throw new IllegalStateException(message.name() + " v" + version + " is lost in its JSON: " + json);
        }
        ObjectNode line = JSON.createObjectNode();
        line.put("message", message.name());
        line.put("version", version);
        line.put("hex", HexFormat.of().formatHex(encoded));
        line.set("json", json);
        return JSON.writeValueAsString(line);
    }

    private static byte[] encode(Message object, short version) {
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(object, version).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }
}
