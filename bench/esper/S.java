/** An event of the stream, as a Java bean: the kind of event whose attributes Esper reads by plain calls. */
public final class S {
    private final long ts;
    private final int d1;
    private final int d2;
    private final int d3;
    private final int d4;
    private final double c1;
    private final double c2;
    private final double c3;
    private final double c4;

    /** @param cells ts, d1 … d4, c1 … c4 */
    S(String[] cells) {
        ts = Long.parseLong(cells[0]);
        d1 = Integer.parseInt(cells[1]);
        d2 = Integer.parseInt(cells[2]);
        d3 = Integer.parseInt(cells[3]);
        d4 = Integer.parseInt(cells[4]);
        c1 = Double.parseDouble(cells[5]);
        c2 = Double.parseDouble(cells[6]);
        c3 = Double.parseDouble(cells[7]);
        c4 = Double.parseDouble(cells[8]);
    }

    public long getTs() {
        return ts;
    }

    public int getD1() {
        return d1;
    }

    public int getD2() {
        return d2;
    }

    public int getD3() {
        return d3;
    }

    public int getD4() {
        return d4;
    }

    public double getC1() {
        return c1;
    }

    public double getC2() {
        return c2;
    }

    public double getC3() {
        return c3;
    }

    public double getC4() {
        return c4;
    }
}
