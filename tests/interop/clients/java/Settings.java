import com.fasterxml.jackson.databind.JsonNode;
import java.util.Properties;
import org.apache.kafka.clients.CommonClientConfigs;

/** What all three clients are told. */
final class Settings {
    private Settings() {}

    static Properties common(JsonNode options) {
        Properties settings = new Properties();
        settings.put(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG, options.get("address").textValue());
        settings.put(
            CommonClientConfigs.RECONNECT_BACKOFF_MAX_MS_CONFIG, options.get("reconnect_ms_max").longValue());
        return settings;
    }

    /** For consumer and admin; a producer has its own words for it. */
    static Properties withTimeout(JsonNode options) {
        Properties settings = common(options);
        settings.put(CommonClientConfigs.DEFAULT_API_TIMEOUT_MS_CONFIG, options.get("wait_ms_max").intValue());
        return settings;
    }
}
