import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONObject;
import com.alibaba.fastjson2.JSONWriter;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.attribute.TopicMessageType;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageClientIDSetter;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.message.MessageRequestMode;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** Java clients of RocketMQ: each line of the input is a request in JSON, each line of the output its answer. */
public class RocketClient {
    static final long WAIT_MS = 60_000;
    static String names, broker, proxy;

    public static void main(String[] args) throws Exception {
        names = args[0];
        broker = args[1];
        proxy = args[2];
        PrintStream answers = System.out;
        System.setOut(System.err); // the clients may print; only answers go to the output
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            Map<String, Object> answer = new HashMap<>();
            try {
                answer.put("answer", answer(JSON.parseObject(line)));
            } catch (Throwable error) {
                answer.put("error", String.valueOf(error));
            }
            answers.println(JSON.toJSONString(answer, JSONWriter.Feature.WriteNulls));
            answers.flush();
        }
        System.exit(0); // the clients' threads would keep an idle JVM alive
    }

    static Object answer(JSONObject request) throws Exception {
        String topic = request.getString("topic");
        List<String> bodies = request.getList("bodies", String.class);
        switch (request.getString("do")) {
            case "create": return create(topic, request.getString("type"), request.getIntValue("queues"));
            case "send": return send(topic, bodies, request.getIntValue("level"));
            case "batch": return batch(topic, bodies);
            case "transactions": return transactions(topic, bodies);
            case "grpc": return grpc(topic, bodies, request.getString("kind"));
            case "by_offset_id": return row(admin().viewMessage(topic, request.getString("id")));
            case "by_unique_key": return byUniqueKey(topic, request.getString("id"));
            case "push": return push(topic, request.getString("group"), request.getIntValue("count"), request.getIntValue("again"), request.getBooleanValue("pop"), request.getIntValue("most"));
            case "again": return again(topic, request.getString("from"));
            case "pull": return pull(topic);
            default: throw new IllegalArgumentException(request.toString());
        }
    }

    static DefaultMQAdminExt admin;

    static DefaultMQAdminExt admin() throws Exception {
        if (admin == null) {
            admin = new DefaultMQAdminExt(WAIT_MS);
            admin.setNamesrvAddr(names);
            admin.start();
        }
        return admin;
    }

    static Object create(String topic, String type, int queues) throws Exception {
        TopicConfig config = new TopicConfig(topic, queues, queues);
        config.setAttributes(new HashMap<>(Map.of("+message.type", TopicMessageType.valueOf(type).name())));
        admin().createAndUpdateTopicConfig(broker, config);
        for (long end = System.currentTimeMillis() + WAIT_MS; System.currentTimeMillis() < end; Thread.sleep(100)) {
            try {
                admin().examineTopicRouteInfo(topic);
                return null;
            } catch (MQClientException unknown) { // the name server has not heard of it yet
            }
        }
        throw new IllegalStateException("the name server does not know " + topic);
    }

    static DefaultMQProducer producer;

    static DefaultMQProducer producer() throws Exception {
        if (producer == null) {
            producer = new DefaultMQProducer("remoting");
            producer.setNamesrvAddr(names);
            producer.setSendMsgTimeout((int) WAIT_MS);
            producer.start();
        }
        return producer;
    }

    static Message message(String topic, String body) {
        return new Message(topic, "A", "key-" + body, body.getBytes());
    }

    static Map<String, Object> receipt(SendResult sent, long before) {
        Map<String, Object> found = new HashMap<>();
        found.put("status", sent.getSendStatus().name());
        found.put("msgId", sent.getMsgId());
        found.put("offsetMsgId", sent.getOffsetMsgId());
        found.put("broker", sent.getMessageQueue().getBrokerName());
        found.put("queueId", sent.getMessageQueue().getQueueId());
        found.put("queueOffset", sent.getQueueOffset());
        found.put("before", before);
        found.put("after", System.currentTimeMillis());
        return found;
    }

    static Object send(String topic, List<String> bodies, int level) throws Exception {
        List<Object> receipts = new ArrayList<>();
        for (String body : bodies) {
            Message message = message(topic, body);
            message.setDelayTimeLevel(level);
            long before = System.currentTimeMillis();
            receipts.add(receipt(producer().send(message), before));
        }
        return receipts;
    }

    static Object batch(String topic, List<String> bodies) throws Exception {
        List<Message> messages = new ArrayList<>();
        for (String body : bodies) {
            messages.add(message(topic, body));
        }
        long before = System.currentTimeMillis();
        return List.of(receipt(producer().send(messages), before));
    }

    static Object transactions(String topic, List<String> bodies) throws Exception {
        TransactionMQProducer producer = new TransactionMQProducer("transactions");
        producer.setNamesrvAddr(names);
        producer.setSendMsgTimeout((int) WAIT_MS);
        producer.setTransactionListener(new TransactionListener() {
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }

            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        producer.start();
        List<Object> receipts = new ArrayList<>();
        for (String body : bodies) {
            long before = System.currentTimeMillis();
            receipts.add(receipt(producer.sendMessageInTransaction(message(topic, body), null), before));
        }
        producer.shutdown();
        return receipts;
    }

    static Object grpc(String topic, List<String> bodies, String kind) throws Exception {
        ClientServiceProvider provider = ClientServiceProvider.loadService();
        ClientConfiguration settings = ClientConfiguration.newBuilder().setEndpoints(proxy).enableSsl(false).build();
        List<Object> ids = new ArrayList<>();
        try (org.apache.rocketmq.client.apis.producer.Producer sender = provider.newProducerBuilder()
                .setClientConfiguration(settings).setTopics(topic)
                .setTransactionChecker(message -> TransactionResolution.COMMIT).build()) {
            for (String body : bodies) {
                var message = provider.newMessageBuilder().setTopic(topic).setKeys("key-" + body).setBody(body.getBytes());
                if (kind.equals("FIFO")) {
                    message.setMessageGroup("group");
                }
                if (kind.equals("DELAY")) {
                    message.setDeliveryTimestamp(System.currentTimeMillis() + 1000);
                }
                if (kind.equals("TRANSACTION")) {
                    Transaction transaction = sender.beginTransaction();
                    ids.add(sender.send(message.build(), transaction).getMessageId().toString());
                    transaction.commit();
                } else {
                    ids.add(sender.send(message.build()).getMessageId().toString());
                }
            }
        }
        return ids;
    }

    static Map<String, Object> row(MessageExt message) {
        Map<String, Object> found = new HashMap<>();
        found.put("topic", message.getTopic());
        found.put("brokerName", message.getBrokerName());
        found.put("queueId", message.getQueueId());
        found.put("queueOffset", message.getQueueOffset());
        found.put("commitLogOffset", message.getCommitLogOffset());
        found.put("bornTimestamp", message.getBornTimestamp());
        found.put("storeTimestamp", message.getStoreTimestamp());
        found.put("reconsumeTimes", message.getReconsumeTimes());
        found.put("msgId", message.getMsgId());
        found.put("properties", message.getProperties());
        found.put("body", Base64.getEncoder().encodeToString(message.getBody()));
        String unique = MessageClientIDSetter.getUniqID(message);
        found.put("javaTime", unique == null || unique.startsWith("01") ? null
                : MessageClientIDSetter.getNearlyTimeFromID(unique).getTime());
        return found;
    }

    static Object byUniqueKey(String topic, String id) throws Exception {
        List<Object> found = new ArrayList<>();
        for (MessageExt message : admin().queryMessageByUniqKey("check", topic, id, 32, 0, Long.MAX_VALUE).getMessageList()) {
            found.add(row(message));
        }
        return found;
    }

    /** Send the messages of a dead-letter topic again, with the properties that a program copies. */
    static Object again(String topic, String from) throws Exception {
        List<Object> receipts = new ArrayList<>();
        for (Map<String, Object> row : pull(from)) {
            Message message = new Message(topic, Base64.getDecoder().decode((String) row.get("body")));
            Map<?, ?> held = (Map<?, ?>) row.get("properties");
            message.setKeys((String) held.get("KEYS"));
            MessageAccessor.putProperty(message, "UNIQ_KEY", (String) held.get("UNIQ_KEY"));
            receipts.add(receipt(producer().send(message), System.currentTimeMillis()));
        }
        return receipts;
    }

    static Object push(String topic, String group, int count, int again, boolean pop, int most) throws Exception {
        LinkedBlockingQueue<Map<String, Object>> rows = new LinkedBlockingQueue<>();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(names);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeMessageBatchMaxSize(1);
        if (most > 0) {
            consumer.setMaxReconsumeTimes(most);
        }
        if (pop) {
            admin().setMessageRequestMode(broker, topic, group, MessageRequestMode.POP, 0, WAIT_MS);
            consumer.setClientRebalance(false);
        }
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            context.setDelayLevelWhenNextConsume(1);
            messages.forEach(message -> rows.add(row(message)));
            return messages.get(0).getReconsumeTimes() < again ? ConsumeConcurrentlyStatus.RECONSUME_LATER
                    : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        // A client that did not hear in time that its message went back to the broker hands it out once more.
        List<Object> found = new ArrayList<>();
        Set<Object> handled = new HashSet<>();
        Set<Object> bodies = new HashSet<>();
        long end = System.currentTimeMillis() + WAIT_MS;
        while (System.currentTimeMillis() < end
                && (handled.size() < count || most > 0 && !bodiesOf("%DLQ%" + group).containsAll(bodies))) {
            Map<String, Object> next = rows.poll(1, TimeUnit.SECONDS);
            if (next != null) {
                found.add(next);
                bodies.add(next.get("body"));
                handled.add(List.of(next.get("body"), next.get("reconsumeTimes")));
            }
        }
        consumer.shutdown();
        return found;
    }

    /** The bodies of a topic, which may not exist yet. */
    static Set<Object> bodiesOf(String topic) throws Exception {
        Set<Object> found = new HashSet<>();
        try {
            admin().examineTopicRouteInfo(topic);
        } catch (MQClientException unknown) {
            return found;
        }
        pull(topic).forEach(row -> found.add(row.get("body")));
        return found;
    }

    /** The queues of a topic; the name server may not know them right after a restart of the broker. */
    static List<MessageQueue> queues(DefaultMQPullConsumer consumer, String topic) throws Exception {
        for (long end = System.currentTimeMillis() + WAIT_MS;; Thread.sleep(100)) {
            try {
                return new ArrayList<>(consumer.fetchSubscribeMessageQueues(topic));
            } catch (MQClientException unknown) {
                if (System.currentTimeMillis() > end) {
                    throw unknown;
                }
            }
        }
    }

    /** All rows of a topic, from each queue's first to its last. A consumer that polls may skip rows when it seeks. */
    static List<Map<String, Object>> pull(String topic) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("pull");
        consumer.setNamesrvAddr(names);
        consumer.start();
        List<Map<String, Object>> found = new ArrayList<>();
        try {
            long end = System.currentTimeMillis() + WAIT_MS;
            for (MessageQueue queue : queues(consumer, topic)) {
                long last = admin().maxOffset(queue);
                for (long next = admin().minOffset(queue); next < last && System.currentTimeMillis() < end; ) {
                    PullResult result = consumer.pull(queue, "*", next, 32);
                    if (result.getPullStatus() == PullStatus.FOUND) {
                        result.getMsgFoundList().forEach(message -> found.add(row(message)));
                    }
                    next = result.getNextBeginOffset();
                }
            }
        } finally {
            consumer.shutdown();
        }
        return found;
    }
}
