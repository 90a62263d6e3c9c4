/* Load on a broker at C speed, through librdkafka: bench/broker_load.py compiles and runs this.
 *
 *   produce ADDRESS TOPIC PARTITION COUNT SIZE [NAME=VALUE...]   partition -1: librdkafka spreads them
 *   consume ADDRESS TOPIC PARTITIONS COUNT [NAME=VALUE...]       by assignment, from the beginning
 *   latency ADDRESS TOPIC RATE SECONDS SIZE [NAME=VALUE...]      a writer and a tail reader in one process
 *
 * Each prints one line of JSON. Time begins with the first message that is handed over or comes in, and ends
 * with the last that is acknowledged or came in. NAME=VALUE are librdkafka's settings; all others are its defaults.
 *
 * The declarations below are librdkafka's public interface, which has not changed since its version 1.0. They
 * stand here because the library comes with the Python package and the header does not.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <time.h>

typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_topic_s rd_kafka_topic_t;
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_queue_s rd_kafka_queue_t;
typedef struct {
    int err;
    rd_kafka_topic_t *rkt;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *private_;
} message_t;

enum { PRODUCER = 0, CONSUMER = 1 };
enum { COPY = 2, QUEUE_FULL = -184, PARTITION_EOF = -191, CONF_OK = 0 };
enum { FROM_BEGINNING = -2, FROM_END = -1 };

rd_kafka_conf_t *rd_kafka_conf_new(void);
int rd_kafka_conf_set(rd_kafka_conf_t *, const char *, const char *, char *, size_t);
void rd_kafka_conf_set_dr_msg_cb(rd_kafka_conf_t *, void (*)(rd_kafka_t *, const message_t *, void *));
rd_kafka_t *rd_kafka_new(int, rd_kafka_conf_t *, char *, size_t);
rd_kafka_topic_t *rd_kafka_topic_new(rd_kafka_t *, const char *, void *);
int rd_kafka_produce(rd_kafka_topic_t *, int32_t, int, void *, size_t, const void *, size_t, void *);
int rd_kafka_poll(rd_kafka_t *, int);
int rd_kafka_last_error(void);
const char *rd_kafka_err2str(int);
rd_kafka_queue_t *rd_kafka_queue_new(rd_kafka_t *);
int rd_kafka_consume_start_queue(rd_kafka_topic_t *, int32_t, int64_t, rd_kafka_queue_t *);
int rd_kafka_consume_callback_queue(rd_kafka_queue_t *, int, void (*)(message_t *, void *), void *);

#define TEXT_BYTES (4 << 20)
#define ERROR_BYTES 512
#define WARM_UP 200
#define NS 1000000000LL

static long acknowledged, received, received_bytes;
static int64_t first_ns, last_ns;
static volatile int measuring;
/* Nanoseconds that each measured message took, to its acknowledgement and to its reader. */
static int64_t *ack_ns, *arrival_ns;
static volatile long acks, arrivals;
static long samples_max;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS + now.tv_nsec;
}

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static rd_kafka_conf_t *settings(const char *address, int count, char **given) {
    char error[ERROR_BYTES];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", address, error, sizeof error);
    for (int i = 0; i < count; i++) {
        char *value = strchr(given[i], '=');
        if (!value) fail(given[i], "must be NAME=VALUE");
        *value++ = 0;
        if (rd_kafka_conf_set(conf, given[i], value, error, sizeof error) != CONF_OK) fail(given[i], error);
        value[-1] = '=';
    }
    return conf;
}

static rd_kafka_t *client(int kind, rd_kafka_conf_t *conf) {
    char error[ERROR_BYTES];
    rd_kafka_t *made = rd_kafka_new(kind, conf, error, sizeof error);
    if (!made) fail("client", error);
    return made;
}

/* What events look like, so that compression has something to do and not too little: lz4 makes a third of it. */
static char *event_text(void) {
    static const char *actions[] = {"view", "search", "add-to-basket", "order", "pay", "return", "sign-in", "leave"};
    char *text = malloc(TEXT_BYTES);
    uint64_t dice = 42;
    for (size_t at = 0; at < TEXT_BYTES - 256;) {
        dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
        unsigned some = dice >> 33;
        at += sprintf(text + at, "{\"user\":\"u%07u\",\"action\":\"%s\",\"page\":\"/shop/%x\",\"ms\":%u,\"ok\":%s}",
                      some % 5000000, actions[some % 8], some * 2654435761u, some % 977, some % 9 ? "true" : "false");
        memset(text + at, ' ', 256);
    }
    return text;
}

/* With the CPU seconds of this client: on a small machine it takes them from the broker. */
static void show_done(long count, long bytes, int64_t took_ns) {
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    printf("{\"count\": %ld, \"bytes\": %ld, \"seconds\": %.6f, \"cpu_seconds\": %.6f}\n", count, bytes, took_ns / 1e9,
           cpu.tv_sec + cpu.tv_nsec / 1e9);
}

static void on_delivered(rd_kafka_t *rk, const message_t *message, void *opaque) {
    (void)rk, (void)opaque;
    if (message->err) fail("a message was not acknowledged", rd_kafka_err2str(message->err));
    acknowledged++;
    if (!measuring) return;
    int64_t sent;
    memcpy(&sent, message->payload, sizeof sent);
    if (sent >= first_ns && acks < samples_max) ack_ns[acks++] = now_ns() - sent;
}

static void hand_over(rd_kafka_t *rk, rd_kafka_topic_t *topic, int32_t partition, char *data, size_t size) {
    while (rd_kafka_produce(topic, partition, COPY, data, size, NULL, 0, NULL)) {
        if (rd_kafka_last_error() != QUEUE_FULL) fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
        rd_kafka_poll(rk, 1);
    }
}

static void produce(const char *address, const char *name, int32_t partition, long count, size_t size, int argc,
                    char **argv) {
    rd_kafka_conf_t *conf = settings(address, argc, argv);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivered);
    rd_kafka_t *rk = client(PRODUCER, conf);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, name, NULL);
    char *text = event_text();
    size_t at = 0, last = TEXT_BYTES - 256 - size;
    /* Connecting and learning who leads is not what is asked. */
    hand_over(rk, topic, partition, text, size);
    while (acknowledged < 1) rd_kafka_poll(rk, 10);
    first_ns = now_ns();
    for (long i = 0; i < count; i++, at = at + size > last ? at % 251 : at + size) {
        hand_over(rk, topic, partition, text + at, size);
        if (i % 1024 == 0) rd_kafka_poll(rk, 0);
    }
    while (acknowledged < count + 1) rd_kafka_poll(rk, 10);
    show_done(count, count * (long)size, now_ns() - first_ns);
}

static void on_message(message_t *message, void *opaque) {
    (void)opaque;
    if (message->err == PARTITION_EOF) return;
    if (message->err) fail("consume", rd_kafka_err2str(message->err));
    last_ns = now_ns();
    if (!received++) first_ns = last_ns;
    received_bytes += message->len;
}

static rd_kafka_queue_t *assigned(rd_kafka_t *rk, const char *name, int partitions, int64_t from) {
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, name, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    for (int i = 0; i < partitions; i++)
        if (rd_kafka_consume_start_queue(topic, i, from, queue))
            fail("assign", rd_kafka_err2str(rd_kafka_last_error()));
    return queue;
}

static void consume(const char *address, const char *name, int partitions, long count, int argc, char **argv) {
    rd_kafka_t *rk = client(CONSUMER, settings(address, argc, argv));
    rd_kafka_queue_t *queue = assigned(rk, name, partitions, FROM_BEGINNING);
    while (received < count) {
        rd_kafka_consume_callback_queue(queue, 100, on_message, NULL);
        rd_kafka_poll(rk, 0);
    }
    show_done(received, received_bytes, last_ns - first_ns);
}

static void on_arrival(message_t *message, void *opaque) {
    (void)opaque;
    if (message->err) fail("consume", rd_kafka_err2str(message->err));
    int64_t sent;
    memcpy(&sent, message->payload, sizeof sent);
    received++;
    if (measuring && sent >= first_ns && arrivals < samples_max) arrival_ns[arrivals++] = now_ns() - sent;
}

static void *read_tail(void *queue) {
    while (1) rd_kafka_consume_callback_queue(queue, 100, on_arrival, NULL);
    return NULL;
}

static void *poll_reports(void *rk) {
    while (1) rd_kafka_poll(rk, 100);
    return NULL;
}

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void show(const char *name, int64_t *samples, long count, const char *end) {
    qsort(samples, count, sizeof *samples, by_size);
    printf("\"%s\": {\"p50\": %.4f, \"p99\": %.4f, \"p999\": %.4f, \"max\": %.4f}%s", name, samples[count / 2] / 1e6,
           samples[count * 99 / 100] / 1e6, samples[count * 999 / 1000] / 1e6, samples[count - 1] / 1e6, end);
}

/* Send at even times, whatever the broker does: a slow answer must not spare it the messages after it. */
static void pace(rd_kafka_t *rk, rd_kafka_topic_t *topic, long count, long rate, char *data, size_t size) {
    int64_t start = now_ns();
    for (long i = 0; i < count; i++) {
        int64_t due = start + i * NS / rate;
        struct timespec at = {due / NS, due % NS};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        /* When it should have been sent, so that being late counts, whoever's fault it is. */
        memcpy(data, &due, sizeof due);
        hand_over(rk, topic, 0, data, size);
    }
}

static void latency(const char *address, const char *name, long rate, double seconds, size_t size, int argc,
                    char **argv) {
    rd_kafka_t *reader = client(CONSUMER, settings(address, argc, argv));
    rd_kafka_conf_t *conf = settings(address, argc, argv);
    char error[ERROR_BYTES];
    rd_kafka_conf_set(conf, "linger.ms", "0", error, sizeof error);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivered);
    rd_kafka_t *writer = client(PRODUCER, conf);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(writer, name, NULL);
    rd_kafka_queue_t *queue = assigned(reader, name, 1, FROM_END);
    char *data = calloc(1, size);
    samples_max = rate * seconds;
    ack_ns = calloc(samples_max, sizeof *ack_ns), arrival_ns = calloc(samples_max, sizeof *arrival_ns);
    prctl(PR_SET_TIMERSLACK, 1000);
    /* The reader is at the end when it sees something; from then on it sees everything. */
    while (!received) {
        hand_over(writer, topic, 0, data, size);
        rd_kafka_poll(writer, 0);
        rd_kafka_consume_callback_queue(queue, 10, on_arrival, NULL);
    }
    pthread_t tail, reports;
    pthread_create(&tail, NULL, read_tail, queue);
    pthread_create(&reports, NULL, poll_reports, writer);
    pace(writer, topic, WARM_UP, rate, data, size);
    first_ns = now_ns();
    measuring = 1;
    pace(writer, topic, samples_max, rate, data, size);
    while (arrivals < samples_max || acks < samples_max) {
        struct timespec little = {0, 1000000};
        nanosleep(&little, NULL);
    }
    printf("{");
    show("end_to_end", arrival_ns, arrivals, ", ");
    show("acknowledged", ack_ns, acks, "}\n");
}

int main(int argc, char **argv) {
    if (argc >= 7 && !strcmp(argv[1], "produce"))
        produce(argv[2], argv[3], atoi(argv[4]), atol(argv[5]), atol(argv[6]), argc - 7, argv + 7);
    else if (argc >= 6 && !strcmp(argv[1], "consume"))
        consume(argv[2], argv[3], atoi(argv[4]), atol(argv[5]), argc - 6, argv + 6);
    else if (argc >= 7 && !strcmp(argv[1], "latency"))
        latency(argv[2], argv[3], atol(argv[4]), atof(argv[5]), atol(argv[6]), argc - 7, argv + 7);
    else
        fail("usage", "produce|consume|latency ADDRESS TOPIC ..., see the top of the source");
    fflush(stdout);
    /* Nothing is left to send, and leaving politely takes time that says nothing about the broker. */
    _Exit(0);
}
