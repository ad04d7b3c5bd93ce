import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompileException;
import com.espertech.esper.compiler.client.EPCompiler;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.DeploymentOptions;
import com.espertech.esper.runtime.client.EPDeployException;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import com.espertech.esper.runtime.client.UpdateListener;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Loads queries into Esper, feeds it events on this thread, and prints one line of JSON.
 *
 * <p>Arguments: `statements` or `contexts`; the folder with `templates.epl`, `queries.csv` and `events.csv`; the
 * columns of `queries.csv` as `name:type`, of which the first is the number of a query's template; the seconds for
 * which to warm up; those after which to stop measuring; and those after which to stop in any case.
 */
public final class Driver {
    private static final int PASSES = 9;
    private static final int EVENTS_BETWEEN_LOOKS_AT_THE_CLOCK = 64;
    private static final long LONGER_THAN_ANY_WINDOW = 86_400_000;

    private final EPRuntime runtime;
    private final CompilerArguments compilerArguments;
    private final List<S> events;
    private long matches;
    private long now;
    private final UpdateListener listener = (found, gone, statement, itsRuntime) -> matches += found.length;

    private Driver(List<S> events) {
        // Time comes from events; and one thread needs neither locks nor an order between threads.
        Configuration configuration = new Configuration();
        configuration.getCommon().addEventType("S", S.class);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        configuration.getRuntime().getThreading().setListenerDispatchPreserveOrder(false);
        configuration.getRuntime().getThreading().setInsertIntoDispatchPreserveOrder(false);
        configuration.getRuntime().getExecution().setDisableLocking(true);
        this.events = events;
        compilerArguments = new CompilerArguments(configuration);
        runtime = EPRuntimeProvider.getRuntime("peer", configuration);
        runtime.getEventService().advanceTime(now);
    }

    public static void main(String[] arguments) throws Exception {
        stopAfter(Long.parseLong(arguments[5]));
        Path folder = Path.of(arguments[1]);
        String templates = Files.readString(folder.resolve("templates.epl"));
        String[] columns = arguments[2].split(",");
        List<Object[]> queries = queries(folder.resolve("queries.csv"), columns);
        Driver driver = new Driver(events(folder.resolve("events.csv")));

        long heap = usedHeap();
        long classes = usedByClasses();
        long began = System.nanoTime();
        if (arguments[0].equals("contexts")) {
            driver.loadContexts(templates, queries);
        } else {
            driver.loadStatements(templates.split("\n"), columns, queries);
        }
        double load = since(began);
        heap = usedHeap() - heap;
        classes = usedByClasses() - classes;

        driver.warmUp(Double.parseDouble(arguments[3]));
        Measured measured = driver.measure(Double.parseDouble(arguments[4]));
        System.out.printf(
                Locale.ROOT,
                "{\"load_seconds\": %.3f, \"events_per_second\": %.1f, \"matches\": %d, \"megabytes\": %.1f,"
                        + " \"class_megabytes\": %.1f, \"events\": %d}%n",
                load, measured.rate, measured.matches, heap / 1e6, classes / 1e6, measured.events);
        System.exit(0);
    }

    private static void stopAfter(long seconds) {
        Thread watch = new Thread(() -> {
            try {
                Thread.sleep(seconds * 1_000);
            } catch (InterruptedException woken) {
                Thread.currentThread().interrupt();
            }
            System.err.println("stopped after " + seconds + " seconds");
            Runtime.getRuntime().halt(1);
        });
        watch.setDaemon(true);
        watch.start();
    }

    // What there is to load and to feed

    private static List<S> events(Path path) throws IOException {
        List<S> events = new ArrayList<>();
        for (String line : Files.readAllLines(path)) {
            events.add(new S(line.split(",")));
        }
        return events;
    }

    private static List<Object[]> queries(Path path, String[] columns) throws IOException {
        List<Object[]> queries = new ArrayList<>();
        for (String line : Files.readAllLines(path)) {
            String[] cells = line.split(",");
            Object[] values = new Object[cells.length];
            for (int column = 0; column < cells.length; column++) {
                // No conditional expression, which would make a double of an int.
                if (columns[column].endsWith(":int")) {
                    values[column] = Integer.valueOf(cells[column]);
                } else {
                    values[column] = Double.valueOf(cells[column]);
                }
            }
            queries.add(values);
        }
        return queries;
    }

    // Two ways to load

    /** A statement for each query: each template is compiled once, and deployed with the parameters of each query. */
    private void loadStatements(String[] templates, String[] columns, List<Object[]> queries)
            throws EPCompileException, EPDeployException {
        List<EPCompiled> compiled = new ArrayList<>();
        for (String template : templates) {
            compiled.add(compiled(template));
        }
        for (Object[] query : queries) {
            DeploymentOptions options = new DeploymentOptions();
            options.setStatementSubstitutionParameter(statement -> {
                for (int column = 1; column < columns.length; column++) {
                    statement.setObject(columns[column].split(":")[0], query[column]);
                }
            });
            listen(runtime.getDeploymentService().deploy(compiled.get((Integer) query[0]), options).getStatements());
        }
    }

    /** A statement for each template, and a partition of its context for each query, which an event brings. */
    private void loadContexts(String module, List<Object[]> queries) throws EPCompileException, EPDeployException {
        listen(runtime.getDeploymentService().deploy(compiled(module)).getStatements());
        var sender = runtime.getEventService().getEventSender("Query");
        for (Object[] query : queries) {
            sender.sendEvent(query);
        }
    }

    private EPCompiled compiled(String module) throws EPCompileException {
        EPCompiler compiler = EPCompilerProvider.getCompiler();
        return compiler.compile(module, compilerArguments);
    }

    private void listen(EPStatement[] statements) {
        for (EPStatement statement : statements) {
            if (statement.getName().startsWith("matches")) {
                statement.addListener(listener);
            }
        }
    }

    // Feeding

    private void warmUp(double seconds) {
        long deadline = System.nanoTime() + (long) (seconds * 1e9);
        while (System.nanoTime() < deadline) {
            feed(deadline);
        }
    }

    /** The median of some passes; if the time is too short for one, what there was of it. */
    private Measured measure(double seconds) {
        long deadline = System.nanoTime() + (long) (seconds * 1e9);
        double[] rates = new double[PASSES];
        Measured whole = null;
        for (int pass = 0; pass < PASSES; pass++) {
            long began = System.nanoTime();
            matches = 0;
            int fed = feed(deadline);
            double rate = fed / since(began);
            if (fed < events.size()) {
                return whole == null ? new Measured(rate, matches, fed) : whole;
            }
            rates[pass] = rate;
            double[] sorted = Arrays.copyOf(rates, pass + 1);
            Arrays.sort(sorted);
            whole = new Measured(sorted[sorted.length / 2], matches, fed);
        }
        return whole;
    }

    /** Feeds events until a moment; how many. Before the first one the clock goes on until no pattern waits. */
    private int feed(long deadline) {
        EPEventService service = runtime.getEventService();
        var sender = service.getEventSender("S");
        long start = now + LONGER_THAN_ANY_WINDOW;
        service.advanceTime(start);
        int fed = 0;
        for (S event : events) {
            if (fed % EVENTS_BETWEEN_LOOKS_AT_THE_CLOCK == 0 && System.nanoTime() > deadline) {
                break;
            }
            now = start + event.getTs();
            service.advanceTime(now);
            sender.sendEvent(event);
            fed++;
        }
        return fed;
    }

    private record Measured(double rate, long matches, int events) {}

    // Time and memory

    private static double since(long began) {
        return (System.nanoTime() - began) / 1e9;
    }

    private static long usedHeap() throws InterruptedException {
        for (int time = 0; time < 3; time++) {
            System.gc();
            Thread.sleep(100);
        }
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }

    /** Classes that were loaded are outside the heap. */
    private static long usedByClasses() {
        for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans()) {
            if (pool.getName().equals("Metaspace")) {
                return pool.getUsage().getUsed();
            }
        }
        return 0;
    }
}
