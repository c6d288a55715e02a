"""What colcon and pip install; package.xml says what rosdep brings."""

from glob import glob

from setuptools import find_packages, setup

package_name = 'seg_ros'

setup(
    name=package_name,
    version='0.1.0',
    packages=find_packages(include=[package_name, f'{package_name}.*']),
    package_data={package_name: ['weights/*.safetensors', 'weights/*.onnx']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{package_name}']),
        (f'share/{package_name}', ['package.xml']),
        (f'share/{package_name}/launch', sorted(glob('launch/*.launch.py'))),
        (f'share/{package_name}/config', sorted(glob('config/*.*'))),
    ],
    install_requires=['setuptools'],
    extras_require={'test': ['pytest'], 'training': ['matplotlib', 'tensorboard'],
                    'bag': ['rosbags'], 'onnx': ['onnx', 'onnxruntime']},
    python_requires='>=3.10',
    # The weights are opened by their path.
    zip_safe=False,
    maintainer='seg_ros maintainers',
    maintainer_email='maintainers@seg-ros.example',
    description='Labels every pixel of camera streams with a light attention network.',
    license='Apache-2.0',
    entry_points={
        'console_scripts': [
            'seg_node = seg_ros.commands:seg_node',
            'image_source = seg_ros.commands:image_source',
            'seg_predict = seg_ros.commands:seg_predict',
            'seg_train = seg_ros.commands:seg_train',
            'seg_evaluate = seg_ros.commands:seg_evaluate',
            'seg_export = seg_ros.commands:seg_export',
            'seg_quantize = seg_ros.commands:seg_quantize',
            'seg_bench = seg_ros.commands:seg_bench',
            'seg_bag = seg_ros.commands:seg_bag',
        ],
    },
)
