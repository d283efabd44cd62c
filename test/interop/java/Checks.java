import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** What is asked of every client of the Java SDKs, whatever its version and binding. */
final class Checks {
  interface Check {
    void run(Sdk sdk) throws Exception;
  }

  static final Map<String, Check> ALL = new LinkedHashMap<>();

  static {
    ALL.put("card", Checks::card);
    ALL.put("send", Checks::send);
    ALL.put("stream", Checks::stream);
    ALL.put("get", Checks::get);
    ALL.put("list", Checks::list);
    ALL.put("cancel", Checks::cancel);
    ALL.put("subscribe", Checks::subscribe);
    ALL.put("multi-turn", Checks::multiTurn);
    ALL.put("files and data", Checks::filesAndData);
    ALL.put("push", Checks::push);
    ALL.put("unknown task", Checks::unknownTask);
    ALL.put("task that cannot be canceled", Checks::notCancelable);
    ALL.put("bad request", Checks::badRequest);
  }

  /** Longer than any check lasts, so that the task is there until it is canceled. */
  private static final Map<String, Object> LONG = Map.of("chunks", 100_000, "delayMs", 100);

  private static void equal(Object actual, Object expected) {
    if (!Objects.equals(actual, expected)) throw new AssertionError("expected %s, got %s".formatted(expected, actual));
  }

  private static List<Sdk.Part> say(String text) {
    return List.of(Sdk.Part.text(text));
  }

  private static Sdk.Options echo(Map<String, Object> echo) {
    return new Sdk.Options(echo, null, null);
  }

  /** A stream of a long turn, read until its first chunk. */
  private static Sdk.Events begin(Sdk sdk, String[] id) throws Exception {
    Sdk.Events stream = sdk.stream(say("long"), echo(LONG));
    Sdk.Event first = stream.next();
    equal(first.kind(), "task");
    id[0] = first.id();
    while (!stream.next().kind().equals("artifact"));
    return stream;
  }

  private static void card(Sdk sdk) throws Exception {
    Sdk.Card card = sdk.card();
    equal(card.name(), "Interop");
    equal(card.streaming(), true);
    Sdk.Card extended = sdk.extendedCard();
    if (extended != null) equal(extended.description().endsWith("tells callers with a token more"), true);
  }

  private static void send(Sdk sdk) throws Exception {
    Sdk.Task task = sdk.send(say("hello"), Sdk.Options.NONE);
    equal(task.state(), "completed");
    equal(task.parts(), say("hello"));
  }

  private static void stream(Sdk sdk) throws Exception {
    Sdk.Events events = sdk.stream(say("hi"), echo(Map.of("chunks", 3)));
    List<String> kinds = new ArrayList<>();
    Sdk.Event last = null;
    for (Sdk.Event event = events.next(); event != null; event = events.next()) {
      kinds.add(event.kind());
      last = event;
    }
    equal(kinds, List.of("task", "status", "artifact", "artifact", "artifact", "status"));
    equal(last.state(), "completed");
  }

  private static void get(Sdk sdk) throws Exception {
    Sdk.Task sent = sdk.send(say("get me"), Sdk.Options.NONE);
    Sdk.Task task = sdk.get(sent.id());
    equal(task.id(), sent.id());
    equal(task.parts(), say("get me"));
    equal(task.history(), List.of("user"));
  }

  private static void list(Sdk sdk) throws Exception {
    String contextId = UUID.randomUUID().toString();
    // 1.0.0.Alpha3 reads full pages only.
    for (String text : List.of("a", "b", "c", "d")) sdk.send(say(text), new Sdk.Options(null, null, contextId));
    Sdk.Page first = sdk.list(contextId, 2, null);
    Sdk.Page second = sdk.list(contextId, 2, first.nextPageToken());
    List<Sdk.Part> parts = new ArrayList<>();
    for (Sdk.Page page : List.of(first, second)) page.tasks().forEach(task -> parts.addAll(task.parts()));
    equal(parts, List.of(Sdk.Part.text("d"), Sdk.Part.text("c"), Sdk.Part.text("b"), Sdk.Part.text("a")));
    equal(second.nextPageToken(), null);
  }

  private static void cancel(Sdk sdk) throws Exception {
    String[] id = {null};
    Sdk.Events stream = begin(sdk, id);
    equal(sdk.cancel(id[0]).state(), "canceled");
    equal(stream.last().state(), "canceled");
  }

  private static void subscribe(Sdk sdk) throws Exception {
    String[] id = {null};
    Sdk.Events stream = begin(sdk, id);
    Sdk.Events other = sdk.subscribe(id[0]);
    Sdk.Event first = other.next();
    equal(first.kind() + " " + first.id(), "task " + id[0]);
    equal(other.next().kind(), "artifact");
    sdk.cancel(id[0]);
    equal(other.last().state(), "canceled");
    equal(stream.last().state(), "canceled");
  }

  private static Sdk.Task ask(Sdk sdk) throws Exception {
    Sdk.Task asked = sdk.send(say("first"), echo(Map.of("askInput", true)));
    equal(asked.state(), "input-required");
    return asked;
  }

  private static Sdk.Task answer(Sdk sdk, Sdk.Task asked) throws Exception {
    return sdk.send(say("second"), new Sdk.Options(null, asked.id(), asked.contextId()));
  }

  private static void multiTurn(Sdk sdk) throws Exception {
    Sdk.Task asked = ask(sdk);
    Sdk.Task answered = answer(sdk, asked);
    equal(answered.id(), asked.id());
    equal(answered.state(), "completed");
    equal(answered.parts(), say("second"));
    equal(answered.history(), List.of("user", "agent", "user"));
  }

  private static void filesAndData(Sdk sdk) throws Exception {
    boolean described = sdk.describesFiles();
    // 0.3.3 reads neither null nor empty objects from protocol buffers.
    Map<String, Object> data = Map.of("n", 1.5, "list", List.of("ä", true), "nested", Map.of("deep", Map.of("n", 2.5)));
    List<Sdk.Part> parts =
        List.of(
            file("bytes", "AAEC/w==", described ? "application/octet-stream four.bin" : null),
            file("url", "https://example.com/report.pdf", described ? "application/pdf report.pdf" : null),
            new Sdk.Part("data", data, null, null),
            Sdk.Part.text("and text"));
    Sdk.Task task = sdk.send(parts, Sdk.Options.NONE);
    equal(task.parts(), parts);
    equal(sdk.get(task.id()).parts(), parts);
  }

  private static Sdk.Part file(String kind, String value, String description) {
    String[] words = description == null ? new String[2] : description.split(" ");
    return new Sdk.Part(kind, value, words[0], words[1]);
  }

  private record Delivery(String version, String token, String body) {}

  private static void push(Sdk sdk) throws Exception {
    BlockingQueue<Delivery> received = new LinkedBlockingQueue<>();
    HttpServer receiver = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    receiver.createContext(
        "/",
        exchange -> {
          var headers = exchange.getRequestHeaders();
          String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
          String version = headers.getFirst("A2A-Version");
          received.add(new Delivery(version, headers.getFirst("X-A2A-Notification-Token"), body));
          exchange.sendResponseHeaders(200, -1);
          exchange.close();
        });
    receiver.start();
    try {
      Sdk.Task asked = ask(sdk);
      Sdk.Config config = new Sdk.Config("mine", "http://127.0.0.1:%d/".formatted(receiver.getAddress().getPort()));
      equal(sdk.setConfig(asked.id(), config.id(), config.url(), "a-token"), config);
      equal(sdk.getConfig(asked.id(), config.id()), config);
      equal(sdk.listConfigs(asked.id()), List.of(config));
      answer(sdk, asked);
      List<String> states = new ArrayList<>();
      do {
        Delivery delivery = received.poll(60, TimeUnit.SECONDS);
        if (delivery == null) throw new AssertionError("nothing came after " + states);
        equal(delivery.version(), "0.3");
        equal(delivery.token(), "a-token");
        Sdk.Task task = sdk.pushed(delivery.body());
        equal(task.id(), asked.id());
        if (!states.contains(task.state())) states.add(task.state());
      } while (!states.contains("completed"));
      equal(states, List.of("submitted", "working", "completed"));
      sdk.deleteConfig(asked.id(), config.id());
      equal(sdk.listConfigs(asked.id()), List.of());
    } finally {
      receiver.stop(0);
    }
  }

  private interface Call {
    Object run() throws Exception;
  }

  /** What the SDK tells of the error that a call ends with. */
  private static String refusal(Sdk sdk, Call call) {
    Object result;
    try {
      result = call.run();
    } catch (Throwable error) {
      return sdk.shown(error);
    }
    throw new AssertionError("expected an error, got " + result);
  }

  private static void unknownTask(Sdk sdk) throws Exception {
    String id = UUID.randomUUID().toString();
    equal(refusal(sdk, () -> sdk.get(id)), "TASK_NOT_FOUND");
    if (sdk.losesErrorsOfStreams()) return;
    equal(refusal(sdk, () -> sdk.subscribe(id).next()), "TASK_NOT_FOUND");
  }

  private static void notCancelable(Sdk sdk) throws Exception {
    Sdk.Task task = sdk.send(say("done"), Sdk.Options.NONE);
    equal(refusal(sdk, () -> sdk.cancel(task.id())), "TASK_NOT_CANCELABLE");
  }

  /** These SDKs refuse a message without parts themselves, so what is bad is the context. */
  private static void badRequest(Sdk sdk) throws Exception {
    Sdk.Task task = sdk.send(say("done"), Sdk.Options.NONE);
    Sdk.Options other = new Sdk.Options(null, task.id(), "another-context");
    equal(refusal(sdk, () -> sdk.send(say("more"), other)), "INVALID_PARAMS");
    if (sdk.losesErrorsOfStreams()) return;
    equal(refusal(sdk, () -> sdk.stream(say("more"), other).next()), "INVALID_PARAMS");
  }
}
