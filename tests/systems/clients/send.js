// node send.js ADDRESS TOPIC COUNT: send messages by RocketMQ's Node.js client; print the ID of each as a line.
const { Producer } = require('rocketmq-client-nodejs');

async function main([address, topic, count]) {
  const producer = new Producer({ endpoints: address, maxAttempts: 5, requestTimeout: 30000 });
  await producer.startup();
  for (let n = 0; n < Number(count); n++) {
    const receipt = await producer.send({ topic, body: Buffer.from(`node ${n}`) });
    console.log(receipt.messageId);
  }
  await producer.shutdown();
}

main(process.argv.slice(2)).then(() => process.exit(0), error => {
  console.error(error);
  process.exit(1);
});
