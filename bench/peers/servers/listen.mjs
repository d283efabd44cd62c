import http from 'node:http';

/**
 * An HTTP server: `POST /name` with a text calls that handler, and answers with its result. What a handler writes goes out at once, as an
 * event of SSE. Tells the parent process its port.
 */
export async function listen(handlers) {
  const server = http.createServer(async (request, response) => {
    try {
      let text = '';
      for await (const chunk of request.setEncoding('utf8')) text += chunk;
      const write = (chunk) => response.write(`data: ${chunk}\n\n`);
      const result = await handlers[request.url.slice(1)](text, write);
      response.end(result === undefined ? undefined : String(result));
    } catch (error) {
      console.error(error);
      response.writeHead(500).end(error.message);
    }
  });
  await new Promise((resolve) => server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', resolve));
  process.send({ port: server.address().port });
  process.once('disconnect', () => process.exit());
}
