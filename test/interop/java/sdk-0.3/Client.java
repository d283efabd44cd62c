import io.a2a.client.ClientEvent;
import io.a2a.client.TaskEvent;
import io.a2a.client.TaskUpdateEvent;
import io.a2a.client.config.ClientConfig;
import io.a2a.client.http.A2ACardResolver;
import io.a2a.client.http.JdkA2AHttpClient;
import io.a2a.client.transport.grpc.GrpcTransport;
import io.a2a.client.transport.grpc.GrpcTransportConfig;
import io.a2a.client.transport.jsonrpc.JSONRPCTransport;
import io.a2a.client.transport.jsonrpc.JSONRPCTransportConfig;
import io.a2a.client.transport.rest.RestTransport;
import io.a2a.client.transport.rest.RestTransportConfig;
import io.a2a.client.transport.spi.interceptors.ClientCallContext;
import io.a2a.spec.AgentCard;
import io.a2a.spec.DataPart;
import io.a2a.spec.DeleteTaskPushNotificationConfigParams;
import io.a2a.spec.FilePart;
import io.a2a.spec.FileWithBytes;
import io.a2a.spec.FileWithUri;
import io.a2a.spec.GetTaskPushNotificationConfigParams;
import io.a2a.spec.JSONRPCError;
import io.a2a.spec.ListTaskPushNotificationConfigParams;
import io.a2a.spec.Message;
import io.a2a.spec.PushNotificationConfig;
import io.a2a.spec.TaskIdParams;
import io.a2a.spec.TaskPushNotificationConfig;
import io.a2a.spec.TaskQueryParams;
import io.a2a.spec.TaskStatusUpdateEvent;
import io.a2a.spec.TextPart;
import io.a2a.util.Utils;
import io.grpc.Channel;
import io.grpc.ManagedChannelBuilder;
import java.net.URI;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** The last 0.3 of the SDK: a client of A2A 0.3 over one binding. */
public final class Client implements Sdk {
  private final String binding;
  private final AgentCard card;
  private final io.a2a.client.Client blocking;
  private final io.a2a.client.Client streaming;
  /** Headers, and over gRPC metadata. There one port has all agents, and 0.3 has no field to name one. */
  private final ClientCallContext context;

  /** Connects as users do: from the card of the agent. */
  public Client(String binding, String url, String token) throws Exception {
    this.binding = binding;
    String agent = Path.of(URI.create(url).getPath()).getFileName().toString();
    context = new ClientCallContext(Map.of(), Map.of("Authorization", "Bearer " + token, "baton-agent", agent));
    // A card that is asked for without a version lists only JSON-RPC of 0.3 where this SDK looks.
    Map<String, String> headers = Map.of("Authorization", "Bearer " + token, "A2A-Version", "0.3");
    String path = URI.create(url).resolve(".well-known/agent-card.json").toString();
    card = new A2ACardResolver(new JdkA2AHttpClient(), url, path, headers).getAgentCard();
    blocking = connect(false);
    streaming = connect(true);
  }

  private static Channel channel(String address) {
    return ManagedChannelBuilder.forTarget(address).usePlaintext().build();
  }

  private io.a2a.client.Client connect(boolean streaming) throws Exception {
    var builder =
        io.a2a.client.Client.builder(card).clientConfig(ClientConfig.builder().setStreaming(streaming).build());
    switch (binding) {
      case "JSON-RPC" -> builder.withTransport(JSONRPCTransport.class, new JSONRPCTransportConfig());
      case "HTTP+JSON" -> builder.withTransport(RestTransport.class, new RestTransportConfig());
      default -> builder.withTransport(GrpcTransport.class, new GrpcTransportConfig(Client::channel));
    }
    return builder.build();
  }

  @Override
  public Card card() {
    return toCard(card);
  }

  /** Over the other bindings this SDK returns the card that it has. */
  @Override
  public Card extendedCard() throws Exception {
    return !binding.equals("JSON-RPC") ? null : toCard(blocking.getAgentCard(context));
  }

  private static Card toCard(AgentCard card) {
    return new Card(card.name(), card.capabilities().streaming(), card.description());
  }

  @Override
  public Task send(List<Part> parts, Options options) throws Exception {
    AtomicReference<Task> sent = new AtomicReference<>();
    BiConsumer<ClientEvent, AgentCard> consumer = (event, card) -> sent.set(toTask(((TaskEvent) event).getTask()));
    blocking.sendMessage(toMessage(parts, options), List.of(consumer), error -> {}, context);
    return sent.get();
  }

  @Override
  public Events stream(List<Part> parts, Options options) throws Exception {
    Events events = new Events();
    streaming.sendMessage(toMessage(parts, options), List.of(into(events)), failing(events), context);
    return events;
  }

  @Override
  public Events subscribe(String id) throws Exception {
    Events events = new Events();
    streaming.resubscribe(new TaskIdParams(id), List.of(into(events)), failing(events), context);
    return events;
  }

  private static BiConsumer<ClientEvent, AgentCard> into(Events events) {
    return (event, card) -> {
      if (event instanceof TaskEvent snapshot) {
        events.add(new Event("task", snapshot.getTask().getId(), toState(snapshot.getTask())));
      } else if (((TaskUpdateEvent) event).getUpdateEvent() instanceof TaskStatusUpdateEvent update) {
        events.add(new Event("status", update.getTaskId(), update.getStatus().state().asString()));
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

  /** Without a length of the history this SDK asks for none. */
  @Override
  public Task get(String id) throws Exception {
    return toTask(blocking.getTask(new TaskQueryParams(id, 10), context));
  }

  @Override
  public Page list(String contextId, int pageSize, String pageToken) {
    throw new UnsupportedOperationException("0.3 cannot list tasks");
  }

  @Override
  public Task cancel(String id) throws Exception {
    return toTask(blocking.cancelTask(new TaskIdParams(id), context));
  }

  @Override
  public Config setConfig(String taskId, String id, String url, String token) throws Exception {
    PushNotificationConfig config = new PushNotificationConfig.Builder().id(id).url(url).token(token).build();
    return toConfig(
        blocking.setTaskPushNotificationConfiguration(new TaskPushNotificationConfig(taskId, config), context));
  }

  @Override
  public Config getConfig(String taskId, String id) throws Exception {
    return toConfig(
        blocking.getTaskPushNotificationConfiguration(new GetTaskPushNotificationConfigParams(taskId, id), context));
  }

  @Override
  public List<Config> listConfigs(String taskId) throws Exception {
    var params = new ListTaskPushNotificationConfigParams(taskId);
    return blocking.listTaskPushNotificationConfigurations(params, context).stream().map(Client::toConfig).toList();
  }

  @Override
  public void deleteConfig(String taskId, String id) throws Exception {
    blocking.deleteTaskPushNotificationConfigurations(new DeleteTaskPushNotificationConfigParams(taskId, id), context);
  }

  private static Config toConfig(TaskPushNotificationConfig config) {
    return new Config(config.pushNotificationConfig().id(), config.pushNotificationConfig().url());
  }

  @Override
  public Task pushed(String body) throws Exception {
    return toTask(Utils.unmarshalFrom(body, io.a2a.spec.Task.TYPE_REFERENCE));
  }

  @Override
  public String shown(Throwable error) {
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      if (cause instanceof JSONRPCError known) {
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

  /** It writes neither into protocol buffers. */
  @Override
  public boolean describesFiles() {
    return binding.equals("JSON-RPC");
  }

  @Override
  public boolean losesErrorsOfStreams() {
    return false;
  }

  private static Message toMessage(List<Part> parts, Options options) {
    return new Message(
        Message.Role.USER,
        parts.stream().<io.a2a.spec.Part<?>>map(Client::fromPart).toList(),
        UUID.randomUUID().toString(),
        options.contextId(),
        options.taskId(),
        null,
        options.echo() == null ? null : Map.of("echo", options.echo()),
        null);
  }

  @SuppressWarnings("unchecked")
  private static io.a2a.spec.Part<?> fromPart(Part part) {
    return switch (part.kind()) {
      case "text" -> new TextPart((String) part.value());
      case "data" -> new DataPart((Map<String, Object>) part.value());
      case "url" -> new FilePart(new FileWithUri(part.mediaType(), part.filename(), (String) part.value()));
      default -> new FilePart(new FileWithBytes(part.mediaType(), part.filename(), (String) part.value()));
    };
  }

  private static Part toPart(io.a2a.spec.Part<?> part) {
    if (part instanceof TextPart text) return Part.text(text.getText());
    if (part instanceof DataPart data) return new Part("data", data.getData(), null, null);
    var file = ((FilePart) part).getFile();
    if (file instanceof FileWithUri uri) return new Part("url", uri.uri(), present(uri.mimeType()), present(uri.name()));
    FileWithBytes bytes = (FileWithBytes) file;
    return new Part("bytes", bytes.bytes(), present(bytes.mimeType()), present(bytes.name()));
  }

  private static String present(String text) {
    return text == null || text.isEmpty() ? null : text;
  }

  private static Task toTask(io.a2a.spec.Task task) {
    List<Part> parts = task.getArtifacts().stream().flatMap(each -> each.parts().stream()).map(Client::toPart).toList();
    List<String> history = task.getHistory().stream().map(message -> message.getRole().asString()).toList();
    return new Task(task.getId(), task.getContextId(), toState(task), parts, history);
  }

  private static String toState(io.a2a.spec.Task task) {
    return task.getStatus().state().asString();
  }
}
