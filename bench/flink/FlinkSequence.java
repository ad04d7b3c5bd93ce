import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.apache.flink.api.common.functions.FilterFunction;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.SourceFunction;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.util.Collector;

/**
 * A sequence of single events by key in Flink CEP, on a cluster in this process; prints one line of JSON.
 *
 * <p>Arguments: the file of events, `place,ts,key` a line, where place is that of the type in the sequence, from 1, or 0
 * for a type that it does not name; the number of places; the window; the parallelism; the events between two
 * watermarks; the seconds to warm up, in one pass or more; the passes to measure; the seconds after which to stop.
 */
// A source of plain functions is deprecated in favour of one of several classes, which does the same.
@SuppressWarnings("deprecation")
public final class FlinkSequence {
    private static final LongAdder MATCHES = new LongAdder();
    private static List<Event> events;
    private static volatile long firstEvent;
    private static final AtomicLong LAST_END = new AtomicLong();

    private FlinkSequence() {}

    public static void main(String[] arguments) throws Exception {
        int[] numbers = Arrays.stream(arguments).skip(1).mapToInt(Integer::parseInt).toArray();
        int places = numbers[0];
        int window = numbers[1];
        int parallelism = numbers[2];
        int betweenWatermarks = numbers[3];
        long warmUntil = System.nanoTime() + numbers[4] * 1_000_000_000L;
        int passes = numbers[5];
        stopAfter(numbers[6]);
        events = read(Path.of(arguments[0]));
        double[] seconds = new double[passes];
        long matches;
        do {
            matches = run(places, window, parallelism, betweenWatermarks).matches;
        } while (System.nanoTime() < warmUntil);
        for (int pass = 0; pass < passes; pass++) {
            Pass measured = run(places, window, parallelism, betweenWatermarks);
            if (measured.matches != matches) {
                throw new IllegalStateException(measured.matches + " matches after " + matches);
            }
            seconds[pass] = measured.seconds;
        }
        System.out.printf(Locale.ROOT, "{\"matches\": %d, \"seconds\": %s}%n", matches, Arrays.toString(seconds));
        // Threads of the cluster would keep this process.
        System.exit(0);
    }

    /** From the first event until the last matcher is done: neither the start of the cluster nor its end is counted. */
    private static Pass run(int places, int window, int parallelism, int betweenWatermarks) throws Exception {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(parallelism);
        environment.getConfig().enableObjectReuse();
        MATCHES.reset();
        LAST_END.set(Long.MIN_VALUE);
        // A sequence that skips till any match passes over other types; a filter before the shuffle does it sooner.
        DataStream<Event> keyed =
                environment.addSource(new Replay(betweenWatermarks)).filter((FilterFunction<Event>) event -> event.place > 0);
        CEP.pattern(keyed.keyBy(event -> event.key), sequence(places, window))
                .process(new Counting())
                .addSink(new DiscardingSink<>());
        environment.execute();
        return new Pass(MATCHES.sum(), (LAST_END.get() - firstEvent) / 1e9);
    }

    private static Pattern<Event, ?> sequence(int places, int window) {
        Pattern<Event, Event> pattern = Pattern.<Event>begin("v1").where(at(1));
        for (int place = 2; place <= places; place++) {
            pattern = pattern.followedByAny("v" + place).where(at(place));
        }
        return pattern.within(Duration.ofMillis(window));
    }

    private static SimpleCondition<Event> at(int place) {
        return SimpleCondition.of(event -> event.place == place);
    }

    private static List<Event> read(Path file) throws IOException {
        List<Event> read = new ArrayList<>();
        try (BufferedReader lines = Files.newBufferedReader(file)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] cells = line.split(",");
                read.add(new Event(Integer.parseInt(cells[0]), Long.parseLong(cells[1]), Integer.parseInt(cells[2])));
            }
        }
        return read;
    }

    private static void stopAfter(long seconds) {
        Thread guard = new Thread(() -> {
            try {
                Thread.sleep(seconds * 1_000);
            } catch (InterruptedException interrupted) {
                return;
            }
            System.err.println("stopped after " + seconds + " s");
            Runtime.getRuntime().halt(3);
        });
        guard.setDaemon(true);
        guard.start();
    }

    private static final class Pass {
        final long matches;
        final double seconds;

        Pass(long matches, double seconds) {
            this.matches = matches;
            this.seconds = seconds;
        }
    }

    /** The events of this process, with their times, and a watermark after every so many. */
    private static final class Replay implements SourceFunction<Event> {
        private final int betweenWatermarks;
        private volatile boolean runs = true;

        Replay(int betweenWatermarks) {
            this.betweenWatermarks = betweenWatermarks;
        }

        @Override
        public void run(SourceContext<Event> context) {
            firstEvent = System.nanoTime();
            int number = 0;
            for (Event event : events) {
                if (!runs) {
                    return;
                }
                context.collectWithTimestamp(event, event.ts);
                if (++number % betweenWatermarks == 0) {
                    context.emitWatermark(new Watermark(event.ts));
                }
            }
            // The end of a bounded source is the last watermark.
        }

        @Override
        public void cancel() {
            runs = false;
        }
    }

    /** Flink has made the match, a map of lists of events, when this is called. */
    private static final class Counting extends PatternProcessFunction<Event, Long> {
        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<Long> out) {
            MATCHES.increment();
        }

        @Override
        public void close() {
            LAST_END.accumulateAndGet(System.nanoTime(), Math::max);
        }
    }
}
