//! Calls the agent echo with rmcp, as a client of 2026-07-28 with and without tasks, and of 2025-11-25. Prints a line for each check.
//! Run it with ./run URL TOKEN.
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::sync::mpsc;

type Failure = Box<dyn std::error::Error>;
type Checked = Result<(), Failure>;

/// Answers the questions of the agent, and passes on the progress.
struct Host {
    config: ClientConfig,
    progress: mpsc::UnboundedSender<f64>,
}

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept)
            .with_content(json!({"answer": "from a person"})))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.progress.send(params.progress);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Modern,
    Tasks,
    Legacy,
}

struct Baton {
    client: RunningService<RoleClient, Host>,
    progress: mpsc::UnboundedReceiver<f64>,
}

impl Baton {
    async fn connect(kind: Kind, token: &str) -> Result<Self, Failure> {
        let [_, url, ..] = &std::env::args().collect::<Vec<_>>()[..] else {
            return Err("no URL".into());
        };
        let config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).auth_header(token);
        let lifecycle = match kind {
            Kind::Legacy => ClientLifecycleMode::Initialize,
            _ => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        };
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(serde_json::from_value(json!({"form": {}}))?);
        if kind == Kind::Tasks {
            capabilities.extensions = Some(serde_json::from_value(
                json!({"io.modelcontextprotocol/tasks": {}}),
            )?);
        }
        let (sender, progress) = mpsc::unbounded_channel();
        let host = Host {
            config: ClientConfig::new(capabilities, Implementation::new("interop", "1")),
            progress: sender,
        };
        let transport = StreamableHttpClientTransport::from_config(config);
        Ok(Self {
            client: host.serve_with_lifecycle(transport, lifecycle).await?,
            progress,
        })
    }

    fn echo(arguments: Value, options: Value) -> CallToolRequestParams {
        let mut params = CallToolRequestParams::new("echo").with_arguments(object(arguments));
        let mut meta = RequestMetaObject::default();
        meta.0
            .insert("baton/metadata".into(), json!({"echo": options}));
        params.meta = Some(meta);
        params
    }

    async fn call(&self, arguments: Value, options: Value) -> Result<Value, Failure> {
        Ok(serde_json::to_value(
            self.client
                .call_tool(Self::echo(arguments, options))
                .await?,
        )?)
    }

    async fn tool(&self, name: &'static str, arguments: Value) -> Result<Value, ServiceError> {
        let params = CallToolRequestParams::new(name).with_arguments(object(arguments));
        Ok(json!(self.client.call_tool(params).await?))
    }

    /// The task that a call has made, once it has ended. What it asks for is answered.
    async fn task(&self, options: Value, cancels: bool) -> Result<Value, Failure> {
        let params = Self::echo(json!({"message": "a task"}), options);
        let CallToolResponse::Task(created) = self.client.call_tool_once(params).await? else {
            return Err("no task".into());
        };
        let id = created.task.task_id;
        if cancels {
            self.client
                .cancel_task(CancelTaskParams::new(id.clone()))
                .await?;
        }
        loop {
            let task = json!(self.client.get_task(GetTaskParams::new(id.clone())).await?);
            match task["status"].as_str() {
                Some("working") => {}
                Some("input_required") => {
                    let asked = task["inputRequests"].as_object().ok_or("no questions")?;
                    let answer =
                        json!({"action": "accept", "content": {"answer": "from a person"}});
                    let answers: JsonObject = asked
                        .keys()
                        .map(|key| (key.clone(), answer.clone()))
                        .collect();
                    let update = json!({"taskId": id, "inputResponses": answers});
                    self.client
                        .update_task(serde_json::from_value(update)?)
                        .await?;
                }
                _ => return Ok(task),
            }
            tokio::time::sleep(Duration::from_millis(
                created.task.poll_interval_ms.unwrap_or(1000),
            ))
            .await;
        }
    }
}

fn object(value: Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

fn text_of(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

fn same(seen: impl Into<Value>, expected: impl Into<Value>) -> Checked {
    let (seen, expected) = (seen.into(), expected.into());
    if seen == expected {
        Ok(())
    } else {
        Err(format!("not {expected}: {seen}").into())
    }
}

const CHECKS: [&str; 8] = [
    "tools", "call", "progress", "files", "long", "question", "errors", "token",
];
const TASK_CHECKS: [&str; 3] = ["task", "task with a question", "canceled task"];

async fn check(name: &str, kind: Kind, token: &str) -> Checked {
    if name == "token" {
        let Err(failure) = Baton::connect(kind, "wrong").await else {
            return Err("connected".into());
        };
        return same(format!("{failure:?}").contains("AuthRequired"), true);
    }
    let mut baton = Baton::connect(kind, token).await?;
    match name {
        "tools" => {
            let tools = baton.client.list_all_tools().await?;
            let names: Vec<_> = tools.iter().map(|tool| tool.name.to_string()).collect();
            same(
                names,
                json!(["task_status", "task_cancel", "echo", "index"]),
            )
        }
        "call" => {
            let result = baton.call(json!({"message": "hello"}), json!({})).await?;
            same(result["isError"].as_bool().unwrap_or(false), false)?;
            same(text_of(&result), "hello")
        }
        "progress" => {
            let result = baton
                .call(json!({"message": "ab"}), json!({"chunks": 3}))
                .await?;
            same(text_of(&result), "ababab")?;
            let (first, second) = (baton.progress.recv().await, baton.progress.recv().await);
            same(first < second, true)
        }
        "files" => {
            let file =
                json!({"name": "a.bin", "mediaType": "application/octet-stream", "bytes": "AP8="});
            let result = baton
                .call(json!({"files": [file], "data": {"n": [1]}}), json!({}))
                .await?;
            let blobs: Vec<_> = result["content"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|block| &block["resource"]["blob"])
                .collect();
            same(
                blobs.contains(&&json!("AP8=")) && text_of(&result).contains("\"n\""),
                true,
            )
        }
        "long" => {
            let handed = baton
                .call(json!({"message": "x"}), json!({"delayMs": 600_000}))
                .await?;
            let task = json!({"taskId": handed["structuredContent"]["taskId"]});
            let other = Baton::connect(kind, token).await?;
            let status = other.tool("task_status", task.clone()).await?;
            same(status["structuredContent"]["state"].clone(), "working")?;
            other.tool("task_cancel", task.clone()).await?;
            same(
                other.tool("task_status", task).await?["isError"].clone(),
                true,
            )
        }
        "question" => {
            let mut result = baton
                .call(json!({"message": "x"}), json!({"askInput": true}))
                .await?;
            if kind == Kind::Legacy {
                let answer = json!({"message": "from a person", "taskId": result["structuredContent"]["taskId"]});
                result = baton.call(answer, json!({})).await?;
            }
            same(text_of(&result), "from a person")
        }
        "errors" => {
            match baton.tool("nothing", json!({})).await {
                Err(ServiceError::McpError(ErrorData {
                    code: ErrorCode::INVALID_PARAMS,
                    ..
                })) => {}
                other => return Err(format!("no error of an unknown tool: {other:?}").into()),
            }
            let wrong = baton.call(json!({"message": 7}), json!({})).await?;
            same(wrong["isError"].clone(), true)?;
            same(text_of(&wrong).contains("arguments.message"), true)
        }
        "task" => same(
            text_of(&baton.task(json!({}), false).await?["result"]),
            "a task",
        ),
        "task with a question" => {
            let task = baton.task(json!({"askInput": true}), false).await?;
            same(text_of(&task["result"]), "from a person")
        }
        _ => same(
            baton.task(json!({"delayMs": 600_000}), true).await?["status"].clone(),
            "cancelled",
        ),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let token = std::env::args().nth(2).expect("URL TOKEN");
    let kinds = [
        ("2026-07-28", Kind::Modern, &CHECKS[..]),
        ("2026-07-28", Kind::Tasks, &TASK_CHECKS[..]),
        ("2025-11-25", Kind::Legacy, &CHECKS[..]),
    ];
    for (revision, kind, checks) in kinds {
        for name in checks {
            let limit = Duration::from_secs(60);
            let checked = tokio::time::timeout(limit, check(name, kind, &token)).await;
            match checked.unwrap_or_else(|_| Err("takes too long".into())) {
                Ok(()) => println!("ok {revision} {name}"),
                Err(failure) => println!("failed {revision} {name}: {:?}", failure.to_string()),
            }
        }
    }
}
