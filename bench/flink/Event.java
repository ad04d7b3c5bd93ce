/** One event of a stream; public fields and an empty constructor make it a POJO, which Flink serialises fastest. */
public final class Event {
    public int place;
    public long ts;
    public int key;

    public Event() {}

    Event(int place, long ts, int key) {
        this.place = place;
        this.ts = ts;
        this.key = key;
    }
}
