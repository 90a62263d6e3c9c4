import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BinaryNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.net.JarURLConnection;
import java.net.URL;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.regex.Pattern;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.record.internal.MemoryRecords;

/** A message that Kafka's generator made, found by its JSON converter; the rest is reached by reflection. */
record MessageClass(String name, Class<?> type, Class<?> converter) {
    private static final String SUFFIX = "JsonConverter.class";

    /** Every message in every Kafka jar of the class path, so that none can be forgotten. */
    static Map<String, MessageClass> all() throws Exception {
        Map<String, MessageClass> found = new TreeMap<>();
        ClassLoader loader = MessageClass.class.getClassLoader();
        for (URL manifest : Collections.list(loader.getResources("META-INF/MANIFEST.MF"))) {
            if (manifest.openConnection() instanceof JarURLConnection jar
                    && jar.getJarFileURL().getPath().contains("/kafka")) {
                scan(jar.getJarFile(), loader, found);
            }
        }
        return found;
    }

    private static void scan(JarFile jar, ClassLoader loader, Map<String, MessageClass> found) throws Exception {
        for (JarEntry entry : Collections.list(jar.entries())) {
            String path = entry.getName();
            if (path.endsWith(SUFFIX) && !path.contains("$")) {
                String typeName = path.substring(0, path.length() - SUFFIX.length()).replace('/', '.');
                Class<?> type = loader.loadClass(typeName);
                MessageClass message = new MessageClass(
                    definitionName(type.getSimpleName()), type, loader.loadClass(typeName + "JsonConverter"));
                if (found.put(message.name, message) != null) {
                    throw new IllegalStateException("two messages are named " + message.name);
                }
            }
        }
    }

    /** Kafka's generator appends Data to the names of requests, responses and headers only. */
    private static String definitionName(String simpleName) {
        return simpleName.replaceFirst("(Request|Response|Header)Data$", "$1");
    }

    short lowest() throws ReflectiveOperationException {
        return type.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
    }

    short highest() throws ReflectiveOperationException {
        return type.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
    }

    Schema schema(short version) throws ReflectiveOperationException {
        return ((Schema[]) type.getField("SCHEMAS").get(null))[version];
    }

    /** The fields, as the class names them, that have a tag in that version and hold a struct or null. */
    List<String> nullableTaggedStructs(short version) throws ReflectiveOperationException {
        List<String> names = new ArrayList<>();
        for (BoundField field : schema(version).fields()) {
            if (field.def.type instanceof TaggedFields tagged) {
                for (var inner : tagged.fields().values()) {
                    if (inner.type instanceof Schema && inner.type.isNullable()) {
                        names.add(camelCase(inner.name));
                    }
                }
            }
        }
        return names;
    }

    private static String camelCase(String snakeCase) {
        return Pattern.compile("_(.)").matcher(snakeCase).replaceAll(match -> match.group(1).toUpperCase());
    }

    Message create() throws ReflectiveOperationException {
        return (Message) type.getConstructor().newInstance();
    }

    /** Kafka's own JSON, with one repair: its converter leaves the bytes of record fields out. */
    JsonNode toJson(Message object, short version) throws ReflectiveOperationException {
        JsonNode json = (JsonNode) converter.getMethod("write", type, short.class).invoke(null, object, version);
        fillRecords(json, object);
        return json;
    }

    Message fromJson(JsonNode json, short version) throws ReflectiveOperationException {
        return (Message) converter.getMethod("read", JsonNode.class, short.class).invoke(null, json, version);
    }

    private static void fillRecords(JsonNode json, Object object) throws ReflectiveOperationException {
        for (Field field : object.getClass().getDeclaredFields()) {
            JsonNode node = json.get(field.getName());
            if (Modifier.isStatic(field.getModifiers()) || node == null || node.isNull()) {
                continue;
            }
            field.setAccessible(true);
            Object value = field.get(object);
            if (value instanceof MemoryRecords records) {
                ((ObjectNode) json).set(field.getName(), new BinaryNode(bytesOf(records)));
            } else if (value instanceof Message) {
                fillRecords(node, value);
            } else if (value instanceof Collection<?> items && node instanceof ArrayNode) {
                int i = 0;
                for (Object item : items) {
                    if (item instanceof Message) {
                        fillRecords(node.get(i), item);
                    }
                    i++;
                }
            }
        }
    }

    private static byte[] bytesOf(MemoryRecords records) {
        ByteBuffer buffer = records.buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }
}
