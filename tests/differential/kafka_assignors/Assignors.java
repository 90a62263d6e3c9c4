import com.fasterxml.jackson.databind.JsonNode;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.tukaani.xz.LZMA2Options;
import org.tukaani.xz.XZOutputStream;

/** Writes what Kafka's own assignors and hashes answer to generated cases. README.md says what a line holds. */
public final class Assignors {
    private static final int HISTORIES = 40;
    private static final int STEPS = 6;

    public static void main(String[] args) throws Exception {
        Path directory = Path.of(args[0]);
        Files.createDirectories(directory);
        List<JsonNode> cases = new ArrayList<>();
        for (int seed = 0; seed < HISTORIES; seed++) {
            for (String assignor : List.of("uniform", "range")) {
                for (boolean homogeneous : new boolean[] {true, false}) {
                    RandomGroup group = new RandomGroup(seed, assignor, homogeneous);
                    for (int step = 0; step < STEPS; step++) {
                        cases.add(group.assign());
                        group.change();
                    }
                }
            }
        }
        cases.add(RandomGroup.chain(11, 100).assign());
        cases.addAll(Hashes.cases());
        // All of them before the first is written: a failure leaves the old file alone.
        StringBuilder lines = new StringBuilder();
        cases.forEach(one -> lines.append(one).append('\n'));
        try (OutputStream file = Files.newOutputStream(directory.resolve("assignors.jsonl.xz"));
                XZOutputStream out = new XZOutputStream(file, new LZMA2Options(9))) {
            out.write(lines.toString().getBytes(StandardCharsets.UTF_8));
        }
    }
}
