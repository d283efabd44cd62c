import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A client of one version over one binding. It makes the calls, and tells results in the plain words of this file. */
public interface Sdk {
  /** `kind` is text, bytes (in base64), url or data. */
  record Part(String kind, Object value, String mediaType, String filename) {
    public static Part text(String text) {
      return new Part("text", text, null, null);
    }
  }

  record Task(String id, String contextId, String state, List<Part> parts, List<String> history) {}

  record Page(List<Task> tasks, String nextPageToken) {}

  /** What a stream sends: `kind` is task, status or artifact. An artifact has no state. */
  record Event(String kind, String id, String state) {
    public boolean endsStream() {
      return kind.equals("status") && List.of("completed", "canceled", "failed", "rejected").contains(state);
    }
  }

  record Card(String name, boolean streaming, String description) {}

  record Config(String id, String url) {}

  /** What goes with a message. Each may be null. */
  record Options(Map<String, Object> echo, String taskId, String contextId) {
    public static final Options NONE = new Options(null, null, null);
  }

  Card card() throws Exception;

  /** Null if the SDK cannot ask for it over this binding. */
  Card extendedCard() throws Exception;

  Task send(List<Part> parts, Options options) throws Exception;

  Events stream(List<Part> parts, Options options) throws Exception;

  Task get(String id) throws Exception;

  Page list(String contextId, int pageSize, String pageToken) throws Exception;

  Task cancel(String id) throws Exception;

  Events subscribe(String id) throws Exception;

  Config setConfig(String taskId, String id, String url, String token) throws Exception;

  Config getConfig(String taskId, String id) throws Exception;

  List<Config> listConfigs(String taskId) throws Exception;

  void deleteConfig(String taskId, String id) throws Exception;

  /** The task that a receiver of push notifications got. */
  Task pushed(String body) throws Exception;

  /** The reason of an error if the SDK has a class for it, otherwise its message. */
  String shown(Throwable error);

  /** Whether this SDK sends and reads names and media types of files over this binding. */
  boolean describesFiles();

  /** Whether it looks for events only, and so loses an error that comes before the first one. */
  boolean losesErrorsOfStreams();

  /** A stream. The SDKs call back; this is read. */
  final class Events {
    private final BlockingQueue<Object> queue = new LinkedBlockingQueue<>();
    private boolean ended;

    public void add(Event event) {
      queue.add(event);
    }

    public void fail(Throwable error) {
      queue.add(error);
    }

    /** Null after the last event. Not all bindings tell the end of a stream, so a final status is taken for it. */
    public Event next() throws Exception {
      if (ended) return null;
      Object next = queue.poll(60, TimeUnit.SECONDS);
      if (next == null) throw new AssertionError("the stream has sent nothing for a minute");
      if (next instanceof Exception error) throw error;
      if (next instanceof Error error) throw error;
      Event event = (Event) next;
      ended = event.endsStream();
      return event;
    }

    public Event last() throws Exception {
      Event last = null;
      for (Event event = next(); event != null; event = next()) last = event;
      return last;
    }
  }
}
