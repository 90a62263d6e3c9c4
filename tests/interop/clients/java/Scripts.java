import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools one after the other in one process: starting Java is most of their time.
 *
 * A line {"main": class, "args": [...], "stdin": text} is answered with {"ok": {"code", "stdout", "stderr"}}.
 * The arguments of this program are the jars whose classes every run gets anew, because the tools keep things in
 * static fields; all other jars are on the class path.
 */
public final class Scripts {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    /** Thrown where a tool leaves. Not an Exception, because tools catch those. */
    private static final class Left extends Error {
        private static final long serialVersionUID = 1L;
    }

    private final URL[] jars;

    private Scripts(URL[] jars) {
        this.jars = jars;
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        URL[] jars = new URL[args.length];
        for (int number = 0; number < args.length; number++) {
            jars[number] = new File(args[number]).toURI().toURL();
        }
        Scripts scripts = new Scripts(jars);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            ObjectNode answer = JsonNodeFactory.instance.objectNode();
            answer.set("ok", scripts.run(MAPPER.readTree(line)));
            answers.write(MAPPER.writeValueAsBytes(answer));
            answers.write('\n');
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private ObjectNode run(JsonNode request) throws Exception {
        List<String> args = new ArrayList<>();
        request.get("args").forEach(each -> args.add(each.textValue()));
        ByteArrayOutputStream stdout = new ByteArrayOutputStream();
        ByteArrayOutputStream stderr = new ByteArrayOutputStream();
        System.setIn(new ByteArrayInputStream(request.get("stdin").textValue().getBytes(StandardCharsets.UTF_8)));
        System.setOut(new PrintStream(stdout, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(stderr, true, StandardCharsets.UTF_8));
        List<Runnable> hooks = new ArrayList<>();
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        int code = exitCode(request.get("main").textValue(), args);
        hooks.forEach(Runnable::run);
        ObjectNode ended = JsonNodeFactory.instance.objectNode();
        ended.put("code", code);
        ended.put("stdout", stdout.toString(StandardCharsets.UTF_8));
        ended.put("stderr", stderr.toString(StandardCharsets.UTF_8));
        return ended;
    }

    private int exitCode(String mainClass, List<String> args) throws Exception {
        List<Integer> codes = new ArrayList<>();
        Exit.Procedure leave = (code, message) -> {
            // The process would be gone: what the tool's own handlers print or say after the first time does not count.
            codes.add(code);
            System.setOut(new PrintStream(ByteArrayOutputStream.nullOutputStream()));
            System.setErr(new PrintStream(ByteArrayOutputStream.nullOutputStream()));
            throw new Left();
        };
        Exit.setExitProcedure(leave);
        Exit.setHaltProcedure(leave);
        try (URLClassLoader fresh = new URLClassLoader(jars, Scripts.class.getClassLoader())) {
            Thread.currentThread().setContextClassLoader(fresh);
            fresh.loadClass(mainClass).getMethod("main", String[].class).invoke(null, (Object) args.toArray(new String[0]));
        } catch (InvocationTargetException thrown) {
            if (codes.isEmpty()) {
                // What Java itself does with an exception that nobody catches.
                System.err.print("Exception in thread \"main\" ");
                thrown.getCause().printStackTrace();
                codes.add(1);
            }
        }
        return codes.isEmpty() ? 0 : codes.get(0);
    }
}
