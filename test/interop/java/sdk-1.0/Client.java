import io.a2a.client.ClientEvent;
import io.a2a.client.TaskEvent;
import io.a2a.client.TaskUpdateEvent;
import io.a2a.client.config.ClientConfig;
import io.a2a.client.http.A2ACardResolver;
import io.a2a.client.http.JdkA2AHttpClient;
import io.a2a.client.transport.jsonrpc.JSONRPCTransport;
import io.a2a.client.transport.jsonrpc.JSONRPCTransportConfig;
import io.a2a.client.transport.rest.RestTransport;
import io.a2a.client.transport.rest.RestTransportConfig;
import io.a2a.client.transport.spi.interceptors.ClientCallContext;
import io.a2a.spec.A2AError;
import io.a2a.spec.AgentCard;
import io.a2a.spec.DataPart;
import io.a2a.spec.FilePart;
import io.a2a.spec.FileWithBytes;
import io.a2a.spec.FileWithUri;
import io.a2a.spec.ListTasksParams;
import io.a2a.spec.Message;
import io.a2a.spec.MessageSendParams;
import io.a2a.spec.TaskIdParams;
import io.a2a.spec.TaskQueryParams;
import io.a2a.spec.TaskState;
import io.a2a.spec.TaskStatusUpdateEvent;
import io.a2a.spec.TextPart;
import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/**
 * The newest SDK that is on every mirror of Maven Central: a preview of 1.0. Its gRPC and its push notification configs are
 * those of a draft of 1.0, which no other client or server speaks.
 */
public final class Client implements Sdk {
  private final String binding;
  private final AgentCard card;
  private final io.a2a.client.Client blocking;
  private final io.a2a.client.Client streaming;
  private final ClientCallContext context;

  /** Connects as users do: from the card of the agent. */
  public Client(String binding, String url, String token) throws Exception {
    this.binding = binding;
    Map<String, String> headers = Map.of("Authorization", "Bearer " + token, "A2A-Version", "1.0");
    context = new ClientCallContext(Map.of(), headers);
    String path = URI.create(url).resolve(".well-known/agent-card.json").toString();
    card = new A2ACardResolver(new JdkA2AHttpClient(), url, "", path, headers).getAgentCard();
    blocking = connect(false);
    streaming = connect(true);
  }

  private io.a2a.client.Client connect(boolean streaming) throws Exception {
    var builder =
        io.a2a.client.Client.builder(card).clientConfig(ClientConfig.builder().setStreaming(streaming).build());
    if (binding.equals("JSON-RPC")) builder.withTransport(JSONRPCTransport.class, new JSONRPCTransportConfig());
    else builder.withTransport(RestTransport.class, new RestTransportConfig());
    return builder.build();
  }

  @Override
  public Card card() {
    return toCard(card);
  }

  /** Over HTTP+JSON this SDK cannot read interfaces that have no `tenant`. */
  @Override
  public Card extendedCard() throws Exception {
    return binding.equals("HTTP+JSON") ? null : toCard(blocking.getExtendedAgentCard(context));
  }

  private static Card toCard(AgentCard card) {
    return new Card(card.name(), card.capabilities().streaming(), card.description());
  }

  @Override
  public Task send(List<Part> parts, Options options) throws Exception {
    AtomicReference<Task> sent = new AtomicReference<>();
    BiConsumer<ClientEvent, AgentCard> consumer = (event, card) -> sent.set(toTask(((TaskEvent) event).getTask()));
    blocking.sendMessage(toParams(parts, options), List.of(consumer), error -> {}, context);
    return sent.get();
  }

  @Override
  public Events stream(List<Part> parts, Options options) throws Exception {
    Events events = new Events();
    streaming.sendMessage(toParams(parts, options), List.of(into(events)), failing(events), context);
    return events;
  }

  @Override
  public Events subscribe(String id) throws Exception {
    Events events = new Events();
    streaming.subscribeToTask(new TaskIdParams(id), List.of(into(events)), failing(events), context);
    return events;
  }

  private static BiConsumer<ClientEvent, AgentCard> into(Events events) {
    return (event, card) -> {
      if (event instanceof TaskEvent snapshot) {
        events.add(new Event("task", snapshot.getTask().id(), toState(snapshot.getTask().status().state())));
      } else if (((TaskUpdateEvent) event).getUpdateEvent() instanceof TaskStatusUpdateEvent update) {
        events.add(new Event("status", update.taskId(), toState(update.status().state())));
      } else {
        events.add(new Event("artifact", null, null));
      }
    };
  }

  /** The end of a stream is an error that is null. */
  private static Consumer<Throwable> failing(Events events) {
    return error -> {
      if (error != null) events.fail(error);
    };
  }

  @Override
  public Task get(String id) throws Exception {
    return toTask(blocking.getTask(new TaskQueryParams(id), context));
  }

  @Override
  public Page list(String contextId, int pageSize, String pageToken) throws Exception {
    var params =
        ListTasksParams.builder().contextId(contextId).pageSize(pageSize).pageToken(pageToken).includeArtifacts(true);
    var result = blocking.listTasks(params.build(), context);
    String next = result.nextPageToken();
    return new Page(result.tasks().stream().map(Client::toTask).toList(), next == null || next.isEmpty() ? null : next);
  }

  @Override
  public Task cancel(String id) throws Exception {
    return toTask(blocking.cancelTask(new TaskIdParams(id), context));
  }

  @Override
  public Config setConfig(String taskId, String id, String url, String token) {
    throw draft();
  }

  @Override
  public Config getConfig(String taskId, String id) {
    throw draft();
  }

  @Override
  public List<Config> listConfigs(String taskId) {
    throw draft();
  }

  @Override
  public void deleteConfig(String taskId, String id) {
    throw draft();
  }

  @Override
  public Task pushed(String body) {
    throw draft();
  }

  private static UnsupportedOperationException draft() {
    return new UnsupportedOperationException("this SDK writes configs as a draft of 1.0 had them");
  }

  @Override
  public String shown(Throwable error) {
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      if (cause instanceof A2AError known) {
        return switch (known.getCode()) {
          case -32001 -> "TASK_NOT_FOUND";
          case -32002 -> "TASK_NOT_CANCELABLE";
          case -32602 -> "INVALID_PARAMS";
          default -> known.toString();
        };
      }
    }
    return error.toString();
  }

  @Override
  public boolean describesFiles() {
    return true;
  }

  /** Over JSON-RPC 1.0 such an error is plain JSON. */
  @Override
  public boolean losesErrorsOfStreams() {
    return binding.equals("JSON-RPC");
  }

  private static MessageSendParams toParams(List<Part> parts, Options options) {
    Message message =
        Message.builder()
            .role(Message.Role.ROLE_USER)
            .parts(parts.stream().<io.a2a.spec.Part<?>>map(Client::fromPart).toList())
            .messageId(UUID.randomUUID().toString())
            .contextId(options.contextId())
            .taskId(options.taskId())
            .metadata(options.echo() == null ? null : Map.of("echo", options.echo()))
            .build();
    return MessageSendParams.builder().message(message).build();
  }

  private static io.a2a.spec.Part<?> fromPart(Part part) {
    return switch (part.kind()) {
      case "text" -> new TextPart((String) part.value());
      case "data" -> new DataPart(part.value());
      case "url" -> new FilePart(new FileWithUri(part.mediaType(), part.filename(), (String) part.value()));
      default -> new FilePart(new FileWithBytes(part.mediaType(), part.filename(), (String) part.value()));
    };
  }

  private static Part toPart(io.a2a.spec.Part<?> part) {
    if (part instanceof TextPart text) return Part.text(text.text());
    if (part instanceof DataPart data) return new Part("data", data.data(), null, null);
    var file = ((FilePart) part).file();
    if (file instanceof FileWithUri uri) return new Part("url", uri.uri(), uri.mimeType(), uri.name());
    FileWithBytes bytes = (FileWithBytes) file;
    return new Part("bytes", bytes.bytes(), bytes.mimeType(), bytes.name());
  }

  private static Task toTask(io.a2a.spec.Task task) {
    List<Part> parts =
        task.artifacts() == null
            ? List.of()
            : task.artifacts().stream().flatMap(each -> each.parts().stream()).map(Client::toPart).toList();
    List<String> history =
        task.history() == null
            ? List.of()
            : task.history().stream().map(message -> toWord(message.role().name(), "ROLE_")).toList();
    return new Task(task.id(), task.contextId(), toState(task.status().state()), parts, history);
  }

  private static String toState(TaskState state) {
    return toWord(state.name(), "TASK_STATE_");
  }

  private static String toWord(String name, String prefix) {
    return name.substring(prefix.length()).toLowerCase().replace('_', '-');
  }
}
