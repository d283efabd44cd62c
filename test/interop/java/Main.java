import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Calls the agent with the Java SDK of A2A 1.0 and with that of 0.3, over each binding. Prints a line for each check, as TAP
 * does. Run it with `./run`.
 */
public final class Main {
  private record Kind(String version, String binding, Set<String> without) {}

  /** Over HTTP+JSON these SDKs know only the errors of their own server, which have the name of a Java class. */
  private static final String[] ERRORS = {"unknown task", "task that cannot be canceled", "bad request"};

  /** The preview of 1.0 has the push notification configs of a draft. 0.3 cannot list tasks. */
  private static final List<Kind> KINDS =
      List.of(
          new Kind("1.0", "JSON-RPC", Set.of("push")),
          new Kind("1.0", "HTTP+JSON", Set.of("push", ERRORS[0], ERRORS[1], ERRORS[2])),
          new Kind("0.3", "JSON-RPC", Set.of("list")),
          new Kind("0.3", "HTTP+JSON", Set.of("list", ERRORS[0], ERRORS[1], ERRORS[2])),
          // It has no class for the status FAILED_PRECONDITION.
          new Kind("0.3", "gRPC", Set.of("list", "task that cannot be canceled")));

  public static void main(String[] args) throws Exception {
    boolean failed = false;
    for (Kind kind : KINDS) {
      // The two SDKs have classes of the same names.
      ClassLoader loader = loaderOf(Path.of(args[0]), kind.version);
      Thread.currentThread().setContextClassLoader(loader);
      var connect = loader.loadClass("Client").getConstructor(String.class, String.class, String.class);
      for (Map.Entry<String, Checks.Check> check : Checks.ALL.entrySet()) {
        if (kind.without.contains(check.getKey())) continue;
        String name = "%s %s: %s".formatted(kind.version, kind.binding, check.getKey());
        try {
          Object sdk = connect.newInstance(kind.binding, System.getenv("BATON_URL"), System.getenv("BATON_TOKEN"));
          check.getValue().run((Sdk) sdk);
          System.out.println("ok - " + name);
        } catch (Throwable error) {
          failed = true;
          StringWriter trace = new StringWriter();
          error.printStackTrace(new PrintWriter(trace, true));
          System.out.println("not ok - " + name + "\n" + trace.toString().trim().replaceAll("(?m)^", "# "));
        }
      }
    }
    // Without waiting for the threads of the SDKs.
    System.exit(failed ? 1 : 0);
  }

  private static final Map<String, ClassLoader> LOADERS = new HashMap<>();

  private static ClassLoader loaderOf(Path build, String version) throws Exception {
    if (!LOADERS.containsKey(version)) {
      List<URL> urls = new ArrayList<>(List.of(build.resolve("classes/" + version).toUri().toURL()));
      try (var jars = Files.list(build.resolve("jars/" + version))) {
        for (Path jar : jars.toList()) urls.add(jar.toUri().toURL());
      }
      LOADERS.put(version, new URLClassLoader(urls.toArray(URL[]::new), Main.class.getClassLoader()));
    }
    return LOADERS.get(version);
  }
}
